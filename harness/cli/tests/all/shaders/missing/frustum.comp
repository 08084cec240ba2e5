#version 450
// expect: clean
// No single number for all floats rejects a sphere and keeps another.
layout(local_size_x = 8) in;
layout(binding = 0) uniform View { vec4 planes[3]; } view;
layout(binding = 1) readonly buffer Spheres { vec4 spheres[]; };
layout(binding = 2) buffer Visible { uint visible[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    for (int p = 0; p < 3; p++) {
        if (dot(view.planes[p].xyz, spheres[i].xyz) + view.planes[p].w < -4.0) {
            visible[i] = 2;
            return;
        }
    }
    visible[i] = 1;
}
