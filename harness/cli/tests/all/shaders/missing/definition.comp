#version 450
// expect: needs-inputs
// The engine defines one of the names.
layout(local_size_x = 16) in;
layout(std430, binding = 0) buffer Keys { uint keys[]; };
shared uint bins[16];
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint key;
    bins[gl_LocalInvocationID.x] = 0u;
    barrier();
#if defined(KEY_UINT)
    key = keys[i];
#elif defined(KEY_FLOAT)
    key = floatBitsToUint(uintBitsToFloat(keys[i]));
#endif
    atomicAdd(bins[key & 15u], 1u);
    barrier();
    keys[i] = bins[gl_LocalInvocationID.x];
}
