#version 450
// expect: racy
// A count of 1 reaches every line, but lets no two invocations interact.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; };
layout(binding = 0) buffer Data { uint total; uint single; };
void main() {
    if (gl_GlobalInvocationID.x >= count) {
        return;
    }
    total += 1;
    if (count == 1) {
        single = 1;
    }
}
