// --seed 0
// The invocations beyond the last element change it as well.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint count; } p;
layout(std430, binding = 0) buffer B { uint data[]; };
void main() {
    uint at = min(gl_GlobalInvocationID.x, p.count - 1u);
    data[at] = data[at] * 3u;
}
//~ main: needs-inputs
