// --grid 2,2 --image 0.0=4x4 --image 0.1=16x16x4
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32ui) uniform uimage2D counts;
layout(binding = 1, r32ui) uniform uimage3D volume;
void main() {
    imageAtomicAdd(counts, ivec2(gl_GlobalInvocationID.xy) / 4, 1u);
    imageAtomicMax(volume, ivec3(0), gl_LocalInvocationIndex);
}
//~ main: clean
