// --grid 2 --buffer 0.0=random:512
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) buffer Flag { uint found; };
void main() {
    if (data[gl_GlobalInvocationID.x] > 3)
        found = 1;
}
