#version 450
// expect: needs-inputs
// The second choice of `mode` reaches a store whose address ignores the third axis.
layout(local_size_x = 8) in;
layout(push_constant) uniform P { uint mode; };
layout(std430, binding = 0) buffer A { uint a[]; };
layout(std430, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint z = gl_WorkGroupID.z;
    a[i + 64 * z] = 1;
    if (mode == 77)
        b[i] = z;
    else
        b[i + 64 * z] = 2;
}
