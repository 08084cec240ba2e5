// --seed 0
// Without a comparison, the grid is not rounded up: the condition on the width is an ordinary one.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform P { uint width; } p;
layout(std430, binding = 0) buffer B { float data[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    data[at.y * p.width + at.x] += 1.0;
}
//~ main: clean
