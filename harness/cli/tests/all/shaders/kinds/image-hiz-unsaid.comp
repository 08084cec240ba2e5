// --buffer 0.1=floats:1024 --image 0.0=16x16,fill=floats
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform sampler2D depth;
layout(binding = 1) readonly buffer Boxes { vec4 box[]; };
layout(binding = 2) buffer Draws { uint count; uint visible[]; };
void main() {
    uint i = gl_LocalInvocationIndex;
    if (box[i].z <= textureLod(depth, box[i].xy, box[i].w).x) visible[atomicAdd(count, 1)] = i;
}
//~ main: clean in the orders tried
