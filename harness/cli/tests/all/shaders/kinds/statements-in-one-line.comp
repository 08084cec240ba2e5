// --seed 0
// The barrier belongs between two statements of one line.
#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer B { uint data[]; };
shared uint tile[32];
void main() {
    uint l = gl_LocalInvocationID.x, g = gl_GlobalInvocationID.x;
    tile[l] = data[g]; data[g] = tile[31u - l]; //~ race; fix: put `barrier();` before this line
}
//~ main: racy; mended: clean
