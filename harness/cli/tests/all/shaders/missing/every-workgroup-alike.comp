#version 450
// expect: clean
// Every workgroup would do the same, so that the shader is for one.
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint half_sums[16];
void main() {
    uint lane = gl_LocalInvocationIndex;
    if (lane < 16) {
        half_sums[lane] = data[lane] + data[lane + 16];
    }
    barrier();
    if (lane < 8) {
        data[lane] = half_sums[lane] + half_sums[lane + 8];
    }
}
