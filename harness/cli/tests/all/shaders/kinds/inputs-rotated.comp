// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { uint count; };
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint from = i + count / 2u;
    data[i] = data[from < count ? from : from - count]; //~ race, without a fix
}
//~ main: racy
