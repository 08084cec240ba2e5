// --grid 1
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint total;
void main() {
    uint lane = gl_LocalInvocationID.x;
    if (lane == 0)
        total = 0;
    barrier();
    total += data[lane];
    barrier();
    data[lane] = total;
}
