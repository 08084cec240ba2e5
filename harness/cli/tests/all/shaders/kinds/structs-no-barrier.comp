// --grid 2
#version 450
layout(local_size_x = 8) in;
struct Inner { mat3 turn; vec2 part[3]; };
struct Outer { Inner inner[2]; uint count; mat2x4 wide; };
layout(std430, binding = 0) buffer Data { Outer outer[]; };
layout(row_major, std140, binding = 1) uniform Constants { mat4 view; vec3 shift[4]; };
shared Inner kept[8];
void rotate(inout Inner what, const in float by, out float trace) {
    what.turn[1] += vec3(by);
    what.part[2].yx = what.part[0];
    trace = what.turn[0][0] + what.turn[1].y + determinant(mat2(what.turn));
}
void main() {
    uint at = gl_GlobalInvocationID.x, lane = gl_LocalInvocationIndex;
    Inner mine = outer[at].inner[lane & 1];
    float trace;
    rotate(mine, shift[lane & 3].z, trace);
    kept[lane] = mine;
    outer[at].inner[1] = kept[7 - lane]; //~ race with 19; fix: put `barrier();` before this line
    outer[at].wide = transpose(mat4x2(trace)) * 2.0;
    outer[at].wide[1] = view * vec4(1, 2, 3, 4);
    outer[at].count = uint(inverse(mat3(2.0))[0][0]);
}
//~ main: racy; mended: clean
