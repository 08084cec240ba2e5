// --grid 1
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint s[32];
void main() {
    uint lane = gl_LocalInvocationID.x;
    s[lane] = data[lane];
    barrier();
    if (lane < 16) {
        s[lane] += s[lane + 16];
        barrier();
        if (lane < 8) {
            s[lane] += s[lane + 8];
            barrier();
            if (lane == 0) data[0] = s[0] + s[7];
        }
    }
}
