// --grid 2
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint keys[]; };
layout(binding = 1) buffer Out { uint bins[256]; };
shared uint counts[256];
void main() {
    atomicAdd(counts[keys[gl_GlobalInvocationID.x] & 255], 1); //~ uninitialised-read; fix: clear `counts` before this line, and wait: `barrier();`
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < 256; i += 64) atomicAdd(bins[i], counts[i]); //~ uninitialised-read
}
//~ main: racy; mended: clean
