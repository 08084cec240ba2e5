// --grid 1
#version 450
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 8) in;
layout(binding = 0) buffer Data { uint words[]; };
void main() {
    uint at = gl_LocalInvocationIndex, carry;
    uint sum = uaddCarry(at, 0xffffffffu, carry);
    int whole; float part = frexp(float(at) + 0.5, whole);
    uint high, low; umulExtended(at, 77777777u, high, low);
    uint all = packUnorm4x8(vec4(0.1, 0.5, 0.7, 1.0)) ^ packHalf2x16(vec2(at, 2)) ^ bitfieldReverse(at) ^ bitCount(at)
        ^ uint(findMSB(at)) ^ bitfieldExtract(high, 3, 5) ^ bitfieldInsert(low, sum, 4, 8) ^ carry;
    vec3 n = normalize(cross(vec3(1, at, 2), vec3(3, 1, at)));
    bvec3 less = lessThan(n, reflect(n, vec3(0, 1, 0)));
    [[unroll]] for (int i = 0; i < 3; i++) all += less[i] ? 1u : uint(round(smoothstep(0.0, 1.0, n[i])));
    words[at] = all + uint(whole) + uint(part * 8.0) + uint(mix(1.0, 3.0, any(less))) + uint(mod(atan(n.x, n.y), 2.0));
}
//~ main: clean
