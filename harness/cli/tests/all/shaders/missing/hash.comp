#version 450
// expect: needs-inputs
// No search finds the key.
layout(local_size_x = 8) in;
layout(push_constant) uniform Setup { uint key; };
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint mixed = key * 2654435761u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    mixed ^= mixed >> 13;
    if (mixed == 0x1234567u) data[0] = i;
}
