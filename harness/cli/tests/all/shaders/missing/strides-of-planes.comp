#version 450
// expect: needs-inputs
// A plane shorter than its rows overlaps with the next one.
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(constant_id = 3) const int w = 0;
layout(constant_id = 4) const int h = 0;
layout(constant_id = 5) const int c = 0;
layout(constant_id = 6) const int cstep = 0;
layout(binding = 0) buffer Blob { float blob[]; };
layout(binding = 1) readonly buffer Coefficients { float coefficients[]; };
layout(push_constant) uniform P { int w, h, c, cstep; } p;
#define known(x) (x == 0 ? p.x : x)
void main() {
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (at.x >= known(w) || at.y >= known(h) || at.z >= known(c)) return;
    int i = at.z * known(cstep) + at.y * known(w) + at.x;
    blob[i] = blob[i] * coefficients[at.z * 2] + coefficients[at.z * 2 + 1];
}
