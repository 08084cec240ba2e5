// --grid 1 --buffer 0.0=random:256
// Racy: the clear of the second pass meets the scatter of the first.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) writeonly buffer Sorted { uint sorted[]; };
shared uint count[16];
shared uint mid[64];
void main() {
    uint l = gl_LocalInvocationID.x;
    uint key = keys[l];
    for (uint pass = 0u; pass < 2u; pass++) {
        if (l < 16u) count[l] = 0u; //~ race with 23
        barrier();
        uint digit = (key >> (4u * pass)) & 15u;
        atomicAdd(count[digit], 1u); //~ uninitialised-read
        barrier();
        if (l == 0u) {
            uint sum = 0u;
            for (uint i = 0u; i < 16u; i++) { uint c = count[i]; count[i] = sum; sum += c; }
        }
        barrier();
        mid[atomicAdd(count[digit], 1u)] = key; //~ out-of-bounds; fix: put `barrier();` after this line
        if (pass == 0u) key = mid[l]; //~ race with 23
    }
    barrier();
    sorted[l] = mid[l];
}
//~ main: racy; mended: clean in the orders tried
