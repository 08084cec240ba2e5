// --inputs auto
#version 450
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Q { float q[]; };
layout(std430, binding = 1) readonly buffer K { float k[]; };
layout(std430, binding = 2) readonly buffer V { float v[]; };
layout(std430, binding = 3) writeonly buffer O { float o[]; };
layout(constant_id = 0) const uint SEQ = 32;
const uint D = 8;
shared float kt[16][D];
shared float vt[16][D];
void main() {
    uint l = gl_LocalInvocationIndex;
    uint row = gl_GlobalInvocationID.x;
    float qr[D];
    float acc[D];
    for (uint d = 0; d < D; ++d) { qr[d] = q[row * D + d]; acc[d] = 0.0; }
    float m = -1e30, s = 0.0;
    for (uint t = 0; t < SEQ; t += 16) {
        for (uint d = 0; d < D; ++d) { kt[l][d] = k[(t + l) * D + d]; vt[l][d] = v[(t + l) * D + d]; } //~ race with 24; race with 28; fix: put `barrier();` before the loop in this line
        barrier();
        for (uint j = 0; j < 16; ++j) {
            float dotp = 0.0;
            for (uint d = 0; d < D; ++d) dotp += qr[d] * kt[j][d];
            float nm = max(m, dotp);
            float c = exp(m - nm), p = exp(dotp - nm);
            s = s * c + p;
            for (uint d = 0; d < D; ++d) acc[d] = acc[d] * c + p * vt[j][d];
            m = nm;
        }
    }
    for (uint d = 0; d < D; ++d) o[row * D + d] = acc[d] / s;
}
//~ main: racy; mended: clean
