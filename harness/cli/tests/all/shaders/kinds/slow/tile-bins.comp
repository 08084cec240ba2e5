// --grid 2 --subgroup-size 4
// Clean: triangles binned to tiles, by a count in workgroup memory and one ticket a tile.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer Triangles { uvec4 boxes[]; };
layout(binding = 1) coherent buffer Bins { uint count[16]; uint items[16 * 32]; };
shared uint base[16];
shared uint taken[16];
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint tile = me; tile < 16; tile += 8) taken[tile] = 0;
    barrier();
    uvec4 box = boxes[gl_GlobalInvocationID.x];
    for (uint tile = 0; tile < 16; tile++) {
        bool hit = (box.x & 15) <= tile && tile <= (box.y & 15);
        if (hit) atomicAdd(taken[tile], 1);
    }
    barrier();
    for (uint tile = me; tile < 16; tile += 8) { base[tile] = atomicAdd(count[tile], taken[tile]); taken[tile] = 0; }
    barrier();
    for (uint tile = 0; tile < 16; tile++) {
        bool hit = (box.x & 15) <= tile && tile <= (box.y & 15);
        if (hit) items[tile * 32 + base[tile] + atomicAdd(taken[tile], 1)] = gl_GlobalInvocationID.x;
    }
}
//~ main: clean in the orders tried
