// --grid 2
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { float values[]; };
layout(binding = 1) buffer Sum { float total; };
void main() {
    total += values[gl_GlobalInvocationID.x];
}
