// --grid 2
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Visited { uint owner[64]; };
layout(binding = 1) buffer Queue { uint count; uint queue[]; };
void main() {
    uint node = gl_GlobalInvocationID.x / 2;
    if (owner[node] == 0) {
        owner[node] = gl_GlobalInvocationID.x + 1;
        queue[atomicAdd(count, 1)] = node;
    }
}
