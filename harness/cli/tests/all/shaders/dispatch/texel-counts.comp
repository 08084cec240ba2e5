#version 450
layout(local_size_x = 32) in;
layout(binding = 0, r32ui) uniform uimage2D counts;
layout(set = 1, binding = 2, r32i) uniform iimageBuffer table;
layout(set = 1, binding = 0, r32ui) uniform uimage1D row;
void main() {
    uint number = gl_GlobalInvocationID.x;
    int me = int(number);
    imageAtomicAdd(counts, ivec2(number & 3u, number / 4 % 3), 1u);
    imageStore(table, me, ivec4(-imageLoad(table, me).x + imageSize(table)));
    imageStore(row, imageSize(row) - 1 - me, uvec4(me, 2, 3, 4));
}
