// --grid 1
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint s[32];
void main() {
    uint lane = gl_LocalInvocationID.x;
    for (uint i = lane; i < 50; i += 32) {
        s[lane] = data[i];
        barrier();
        data[i] = s[31 - lane] + 1;
        barrier();
    }
}
