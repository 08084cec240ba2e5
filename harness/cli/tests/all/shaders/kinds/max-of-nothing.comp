// --grid 1
#version 450
layout(local_size_x = 8) in;
layout(binding = 1) buffer Out { uint o[256]; };
shared uint best;
void main() {
    uint i = gl_LocalInvocationIndex; //~ fix: clear `best` before this line, and wait: `barrier();`
    atomicMax(best, i * 3u); //~ uninitialised-read
    barrier();
    if (i == 0u) o[0] = best;
}
//~ main: racy; mended: clean
