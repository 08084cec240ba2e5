// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Q { uint head; uint total; };
layout(std430, binding = 1) buffer O { uint outv[]; };
shared uint item;
void main() {
    for (;;) {
        if (gl_LocalInvocationIndex == 0u) item = atomicAdd(head, 1u);
        barrier();
        uint it = item;
        barrier();
        if (it >= total) break;
        outv[it * 64u + gl_LocalInvocationIndex] = it;
    }
}
//~ main: clean in the orders tried
