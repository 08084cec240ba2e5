// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer V { float v[]; };
layout(binding = 1) readonly buffer H { uint head[]; };
layout(binding = 2) writeonly buffer O { float o[]; };
shared float sv[64];
shared uint sf[64];
void main() {
    uint l = gl_LocalInvocationID.x, g = gl_GlobalInvocationID.x;
    sv[l] = v[g];
    sf[l] = head[g] & 1u;
    barrier();
    for (uint d = 1; d < 64; d *= 2) {
        float nv = sv[l];
        uint nf = sf[l];
        if (l >= d) {
            if (nf == 0) nv += sv[l - d];
            nf |= sf[l - d];
        }
        sf[l] = nf; //~ race with 19; fix: put `barrier();` before this line
        barrier();
        sv[l] = nv;
        barrier();
    }
    o[g] = sv[l];
}
//~ main: racy; mended: clean
