// --grid 2 --buffer 0.0=floats:4096
#version 450
layout(local_size_x = 8) in;
struct Bone { mat4 pose; vec4 weight; };
layout(std430, binding = 0) readonly buffer Bones { Bone bones[]; };
layout(std430, binding = 1) buffer Skin { vec4 skin[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    mat4 pose = mat4(0);
    for (uint j = 0; j < 4; ++j) pose += bones[j].pose * bones[j].weight[j];
    skin[i] = transpose(pose) * vec4(i, 1, 2, 3);
}
//~ main: clean
