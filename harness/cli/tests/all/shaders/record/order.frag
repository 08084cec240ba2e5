#version 450
layout(location = 0) out vec4 colour;
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
#if MODE != 0
layout(set = 0, binding = 1) buffer To { uint to[]; };
#endif
void main() {
#if MODE == 1
    to[0] = 1;
#elif MODE == 2
    atomicAdd(to[0], 1);
#endif
    colour = vec4(from[0]);
}
