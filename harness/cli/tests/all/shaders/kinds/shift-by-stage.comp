// --seed 0
// A shift by 32 bits or more is undefined, so a race that follows from it is none.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform P { uint stage; } p;
layout(std430, binding = 0) buffer B { vec2 data[]; };
void main() {
    uint at = gl_GlobalInvocationID.x, half_size = 1u << p.stage;
    uint one = at / half_size * half_size * 2u + at % half_size, other = one + half_size;
    vec2 a = data[one], b = data[other];
    data[one] = a + b;
    data[other] = a - b;
}
//~ main: clean
