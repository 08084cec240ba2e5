#version 450
// args: --inputs zeros
// expect: clean
// The same as count-uniform.comp, for zeros.
layout(local_size_x = 32) in;
layout(binding = 0) uniform Size { uint count; };
layout(binding = 1) buffer Data { uint data[]; };
shared uint tile[32];
void main() {
    uint lane = gl_LocalInvocationID.x;
    if (lane < count) {
        tile[lane] = data[lane];
        data[lane] = tile[(lane + 1) % 32];
    }
}
