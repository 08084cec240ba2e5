// --grid 2,1,2
// Clean in the orders tried: layers in a section, behind an alpha test of what a sampler gives: no fragment is discarded.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_unordered) in;
layout(location = 0) in vec2 uv;
layout(binding = 2) uniform sampler2D albedo;
struct Layer { float depth; uint colour; };
layout(binding = 0) coherent buffer Layers { Layer layers[]; };
void main() {
    vec4 c = texture(albedo, uv);
    if (c.a < 0.5) discard;
    uint at = (uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x)) * 2;
    Layer mine = Layer(float(gl_PrimitiveID), packUnorm4x8(c));
    beginInvocationInterlockARB();
    for (uint i = 0; i < 2; i++) {
        Layer there = layers[at + i];
        if (mine.depth < there.depth) { layers[at + i] = mine; mine = there; }
    }
    endInvocationInterlockARB();
}
//~ main: clean in the orders tried
