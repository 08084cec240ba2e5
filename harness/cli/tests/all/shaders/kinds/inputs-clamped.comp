// --inputs auto
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = min(gl_GlobalInvocationID.x, 15u);
    data[gl_GlobalInvocationID.y * 16u + i] = gl_GlobalInvocationID.x;
}
//~ main: needs-inputs
