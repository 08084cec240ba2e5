// --grid 2
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Nodes { uint next[]; };
layout(binding = 1) buffer Head { uint head; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint old = head;
    head = i + 1;
    next[i] = old;
}
