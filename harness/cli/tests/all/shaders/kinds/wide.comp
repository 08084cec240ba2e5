// --grid 2
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_atomic_int64 : require
layout(local_size_x = 16) in;
layout(binding = 0) buffer Small { uint8_t bytes[]; };
layout(binding = 1) buffer Half { float16_t halves[]; };
layout(binding = 2) buffer Wide { uint64_t sum; double doubles[]; };
layout(binding = 3) buffer Words { u16vec2 pairs[]; };
void main() {
    uint at = gl_GlobalInvocationID.x;
    bytes[at] = uint8_t(at * 3);
    halves[at] = float16_t(at) * 0.5hf;
    doubles[at] = sqrt(double(at)) + double(halves[at]);
    pairs[at].y = uint16_t(bytes[at]);
    pairs[at].x = uint16_t(7);
    atomicAdd(sum, uint64_t(at) << 33);
}
//~ main: clean
