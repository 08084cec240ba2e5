#version 450
#extension GL_KHR_shader_subgroup_basic : enable
EXTENSIONS
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Words { uint words[]; };
layout(std430, binding = 1) readonly buffer Floats { float floats[]; };
layout(std430, binding = 2) buffer Results { uint results[]; };
uint i, at;
uint W(int k) { return words[(i + k * 37) & 255]; }
float F(int k) { return floats[(i + k * 37) & 255]; }
void put(uint value) { results[at++] = value; }
void put(int value) { put(uint(value)); }
void put(bool value) { put(uint(value)); }
void put(float value) { put(floatBitsToUint(value)); }
void put(uvec2 v) { put(v.x); put(v.y); }
void put(uvec3 v) { put(v.xy); put(v.z); }
void put(uvec4 v) { put(v.xy); put(v.zw); }
void put(ivec2 v) { put(uvec2(v)); }
void put(ivec3 v) { put(uvec3(v)); }
void put(ivec4 v) { put(uvec4(v)); }
void put(bvec2 v) { put(uvec2(v)); }
void put(bvec3 v) { put(uvec3(v)); }
void put(bvec4 v) { put(uvec4(v)); }
void put(vec2 v) { put(floatBitsToUint(v)); }
void put(vec3 v) { put(floatBitsToUint(v)); }
void put(vec4 v) { put(floatBitsToUint(v)); }
void put(mat2 m) { put(m[0]); put(m[1]); }
void put(mat3 m) { put(m[0]); put(m[1]); put(m[2]); }
void put(mat4 m) { put(m[0]); put(m[1]); put(m[2]); put(m[3]); }
uint addCarry(uint a, uint b) { uint c; uint r = uaddCarry(a, b, c); return r ^ c << 3; }
uvec4 addCarry(uvec4 a, uvec4 b) { uvec4 c; uvec4 r = uaddCarry(a, b, c); return r ^ c << 3; }
uint subBorrow(uint a, uint b) { uint c; uint r = usubBorrow(a, b, c); return r ^ c << 3; }
uvec4 subBorrow(uvec4 a, uvec4 b) { uvec4 c; uvec4 r = usubBorrow(a, b, c); return r ^ c << 3; }
uint umul(uint a, uint b) { uint h, l; umulExtended(a, b, h, l); return h ^ l << 1; }
uvec4 umul(uvec4 a, uvec4 b) { uvec4 h, l; umulExtended(a, b, h, l); return h ^ l << 1; }
int imul(int a, int b) { int h, l; imulExtended(a, b, h, l); return h ^ l << 1; }
ivec4 imul(ivec4 a, ivec4 b) { ivec4 h, l; imulExtended(a, b, h, l); return h ^ l << 1; }
float modff(float a) { float w; return modf(a, w); }
vec4 modff(vec4 a) { vec4 w; return modf(a, w); }
float modfw(float a) { float w; modf(a, w); return w; }
vec4 modfw(vec4 a) { vec4 w; modf(a, w); return w; }
float frexpf(float a) { int e; return frexp(a, e); }
vec4 frexpf(vec4 a) { ivec4 e; return frexp(a, e); }
int frexpe(float a) { int e; frexp(a, e); return e; }
ivec4 frexpe(vec4 a) { ivec4 e; frexp(a, e); return e; }
float first(float a) { return a; }
float first(vec2 a) { return a.x; }
uvec4 insert(uvec4 a, uint w) { a[w & 3u] = 7u; return a; }
vec4 insert(vec4 a, uint w) { a[w & 3u] = 7.5; return a; }
uint toU(float a) { return uint(a); }
uvec4 toU(vec4 a) { return uvec4(a); }
int toI(float a) { return int(a); }
ivec4 toI(vec4 a) { return ivec4(a); }
int power(float a) { return int(W(50) & 15u) - 7; }
ivec4 power(vec4 a) { return ivec4(W(50) & 15u, W(51) & 15u, 0, 3) - 7; }
shared uint tile[32];
uint exchanged(uint a) { barrier(); tile[i] = a; barrier(); return tile[i ^ 21u] - tile[31u - i]; }
uint collatz(uint a) { uint n = 0u; while (a > 1u) { if (n > 40u) break; a = (a & 1u) == 0u ? a / 2u : 3u * a + 1u; ++n; } return n; }
uint switched(uint a) { switch (a & 7u) { case 0u: a += 1u; case 1u: return a * 3u; case 5u: a ^= 9u; break; default: a = ~a; } return a; }
uint sorted(uint a, uint b, uint c) {
    uint all[3] = uint[3](a, b, c);
    for (int k = 0; k < 3; ++k) for (int j = 0; j < 2 - k; ++j) if (all[j] > all[j + 1]) { uint t = all[j]; all[j] = all[j + 1]; all[j + 1] = t; }
    return all[0] ^ all[1] * 3u ^ all[2] * 5u;
}
struct Item { mat3 m; float x; mat2x3 n[2]; };
layout(std140, row_major, binding = 5) buffer Items { Item items[32]; };
mat3 stored(mat3 m) { items[i].m = m; items[i].n[1] = mat2x3(m[2], m[0]); items[i].x = m[1][2]; return items[i].m * items[i].n[1][0][1] + items[i].x; }
layout(std430, binding = 6) buffer Cells { uint cells[]; };
