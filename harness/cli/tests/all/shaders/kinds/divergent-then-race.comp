// --grid 1
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint data[4]; uint sum; };
void main() {
    uint l = gl_LocalInvocationIndex;
    if (l < 2) { data[l] = l; barrier(); } //~ divergent-barrier with 8; fix: split this `if` so that every invocation reaches the barrier
    sum = data[l]; //~ race; fix: let one invocation make this store: `if (gl_LocalInvocationIndex == 0)`
}
//~ main: racy; mended: clean
