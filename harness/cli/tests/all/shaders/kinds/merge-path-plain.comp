// --inputs auto
#version 450
#extension GL_EXT_shader_atomic_float : require
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer RowOf { uint rowOf[]; };
layout(std430, binding = 1) readonly buffer Val { float val[]; };
layout(std430, binding = 2) buffer Y { float y[]; };
layout(push_constant) uniform P { uint nnz; uint share; };
void main() {
    uint first = gl_GlobalInvocationID.x * share;
    uint last = min(first + share, nnz);
    if (first >= last) return;
    uint r = rowOf[first];
    float s = 0.0;
    for (uint k = first; k < last; ++k) {
        if (rowOf[k] != r) {
            y[r] += s;
            r = rowOf[k];
            s = 0.0;
        }
        s += val[k];
    }
    y[r] += s;
}
//~ main: needs-inputs
