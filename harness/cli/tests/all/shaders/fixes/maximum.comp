// --grid 2 --buffer 0.0=random:512
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) buffer Best { uint best; };
void main() {
    uint v = values[gl_GlobalInvocationID.x];
    if (v > best)
        best = v;
}
