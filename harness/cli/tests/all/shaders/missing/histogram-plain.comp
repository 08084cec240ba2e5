// Equal values would make two invocations read and write one bin.
// expect: needs-inputs
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Bins { uint bins[256]; };
void main() {
    bins[values[gl_GlobalInvocationID.x] & 255u] += 1u;
}
