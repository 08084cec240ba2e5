// expect: needs-inputs
// args: --buffer m=0
// Other contents than zeros let invocations update the given member.
#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 1) buffer O { uint m; uint o[]; };
void main() {
    uint x = o[gl_GlobalInvocationID.x];
    if (x > m) atomicMax(m, x);
}
