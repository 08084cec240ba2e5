// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { uint count; uint row; };
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint first = gl_GlobalInvocationID.x * row;
    for (uint k = first; k < min(first + row + 1u, count); k++) data[k] = first; //~ race, without a fix
}
//~ main: racy
