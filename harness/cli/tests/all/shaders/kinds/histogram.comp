// --grid 4 --buffer 0.0=random:4096
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint keys[]; };
layout(binding = 1) buffer Out { uint bins[256]; };
shared uint counts[256];
void main() {
    for (uint i = gl_LocalInvocationIndex; i < 256; i += 64) counts[i] = 0;
    barrier();
    for (uint i = 0; i < 4; i++) atomicAdd(counts[keys[gl_GlobalInvocationID.x * 4 + i] & 255], 1);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < 256; i += 64) atomicAdd(bins[i], counts[i]);
}
//~ main: clean
