// --grid 4
#version 450
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float total[]; };
shared float part[128];
void main() {
    uint t = gl_LocalInvocationID.x;
    part[t] = x[gl_GlobalInvocationID.x];
    barrier();
    for (uint s = 1; s < 128; s *= 2) {
        if (t % (2 * s) == 0) { //~ fix: split this `if` so that every invocation reaches the barrier
            part[t] += part[t + s];
            barrier(); //~ divergent-barrier with 17
        }
    }
    if (t == 0) total[gl_WorkGroupID.x] = part[0];
}
//~ main: racy; mended: clean
