// --seed 0
// Applications round the grid up, so the column beyond the last one is the first one of the next row.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform P { int width, height; } p;
layout(std430, binding = 0) buffer B { float data[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (at.x > p.width || at.y > p.height) return;
    data[at.y * p.width + at.x] += 1.0;
}
//~ main: needs-inputs
