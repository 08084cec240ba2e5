// A histogram of 64 values in 16 bins: whatever the values are, two invocations update one bin.
// expect: racy
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(std430, set = 0, binding = 1) buffer Bins { uint bins[16]; };

void main() {
    uint bin = values[gl_GlobalInvocationID.x] % 16;
    bins[bin] = bins[bin] + 1;
}
