// --grid 1 --buffer 0.0=iota:128
// fix: none
// A difference has no atomic if the old value is subtracted.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { uint x[]; };
layout(binding = 1) buffer Sum { uint sum; };
void main() {
    sum = x[gl_GlobalInvocationID.x] - sum;
}
