// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) uniform Extent { float width; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (float(i) < width) data[i + 1u] = data[i]; //~ race, without a fix
}
//~ main: racy
