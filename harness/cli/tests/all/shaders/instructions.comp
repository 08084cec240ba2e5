#version 450
layout(local_size_x = 16) in;
layout(constant_id = 0) const uint COUNT = 5;
const uvec2 SIZES = uvec2(COUNT, COUNT + 1);
struct Rows { mat2x3 weights; vec4 place; };
layout(std430, row_major, binding = 0) buffer Whole { Rows parts[]; } whole;
layout(std430, binding = 1) readonly buffer Words { uvec4 words[]; };
layout(std430, binding = 2) buffer Results { uvec4 results[]; };
layout(std430, binding = 3) buffer Cells { uint cells[]; };
layout(std140, binding = 4) buffer Packed { Rows parts[]; } packed;
shared vec4 tile[16];
uint i, at;
void put(uvec4 value) { results[i * 64 + at++] = value; }
void put(ivec4 value) { put(uvec4(value)); }
void put(uvec2 value) { put(uvec4(value, 0, 0)); }
void put(uint value) { put(uvec4(value)); }
void put(bvec4 value) { put(uvec4(value)); }
void put(bool value) { put(uvec4(value)); }
void put(vec4 value) { put(floatBitsToUint(value)); }
void put(vec3 value) { put(vec4(value, 0)); }
void put(vec2 value) { put(vec4(value, 0, 0)); }
void put(float value) { put(vec4(value)); }
bool near(float x, float y) { return abs(x - y) <= 0.002 * max(1.0, max(abs(x), abs(y))); }
bvec4 near(vec4 x, vec4 y) { return lessThanEqual(abs(x - y), 0.002 * max(vec4(1), max(abs(x), abs(y)))); }
bvec4 near(vec3 x, vec3 y) { return near(vec4(x, 0), vec4(y, 0)); }
bvec4 near(vec2 x, vec2 y) { return near(vec4(x, 0, 0), vec4(y, 0, 0)); }
void swap(inout uvec4 x, inout uvec4 y) { uvec4 kept = x; x = y; y = kept; }
