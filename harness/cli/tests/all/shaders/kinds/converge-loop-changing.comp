// --grid 2 --buffer 0.0=iota:256
// Racy: lane 0 ends the loop while others still ask whether to go on.
#version 450
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) writeonly buffer Out { uint result[]; };
shared bool go;
shared uint v[16];
void main() {
    uint l = gl_LocalInvocationID.x;
    v[l] = data[gl_GlobalInvocationID.x];
    if (l == 0u) go = true;
    barrier();
    uint rounds = 0u;
    while (go) {
        if (l == 0u) go = rounds < 3u; //~ race with 15; fix: put `barrier();` before this line
        rounds++;
        barrier(); //~ divergent-barrier with 20
    }
    result[gl_GlobalInvocationID.x] = v[l] + rounds;
}
//~ main: racy; mended: clean
