// --grid 4 --subgroup-size 32
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 128) in;
#define FLAG_NONE 0u
#define FLAG_AGG 1u
#define FLAG_PREFIX 2u
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) coherent buffer Status { uint tile_counter; uint status[]; };
shared uint warp_sums[32];
shared uint tile_id;
shared uint exclusive;
void main() {
    if (gl_LocalInvocationIndex == 0) tile_id = atomicAdd(tile_counter, 1);
    barrier();
    uint tile = tile_id;
    uint v = data[tile * 128 + gl_LocalInvocationIndex];
    uint inc = subgroupInclusiveAdd(v);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) warp_sums[gl_SubgroupID] = inc;
    barrier();
    uint base = 0, total = 0;
    for (uint i = 0; i < gl_NumSubgroups; i++) {
        if (i < gl_SubgroupID) base += warp_sums[i];
        total += warp_sums[i];
    }
    if (gl_LocalInvocationIndex == 0) {
        atomicExchange(status[tile], (total << 2) | (tile == 0 ? FLAG_PREFIX : FLAG_AGG));
        uint sum = 0;
        int look = int(tile) - 1;
        while (look >= 0) {
            uint s = atomicOr(status[look], 0);
            uint f = s & 3u;
            if (f == FLAG_NONE) continue;
            sum += s >> 2;
            if (f == FLAG_PREFIX) break;
            look--;
        }
        if (tile > 0) atomicExchange(status[tile], ((sum + total) << 2) | FLAG_PREFIX);
        exclusive = sum;
    }
    barrier();
    data[tile * 128 + gl_LocalInvocationIndex] = exclusive + base + inc;
}
//~ main: clean in the orders tried
