// --grid 1 --buffer 0.0=random:256
// Clean: histogram, scan by lane 0, scatter by atomicAdd of offsets.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) writeonly buffer Sorted { uint sorted[]; };
shared uint count[16];
void main() {
    uint l = gl_LocalInvocationID.x;
    if (l < 16u) count[l] = 0u;
    barrier();
    uint key = keys[l], digit = key & 15u;
    atomicAdd(count[digit], 1u);
    barrier();
    if (l == 0u) {
        uint sum = 0u;
        for (uint i = 0u; i < 16u; i++) { uint c = count[i]; count[i] = sum; sum += c; }
    }
    barrier();
    sorted[atomicAdd(count[digit], 1u)] = key;
}
//~ main: clean in the orders tried
