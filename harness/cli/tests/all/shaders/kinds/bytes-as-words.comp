// --grid 2
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 8) in;
layout(binding = 0) buffer Small { uint8_t bytes[]; };
layout(binding = 0) buffer Whole { uint words[]; };
void main() {
    uint at = gl_GlobalInvocationID.x;
    if (at % 4 == 0) words[at / 4] = at; //~ race with 11, without a fix
    bytes[at ^ 1] = uint8_t(1);
}
//~ main: racy
