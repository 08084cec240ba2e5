// --image 0.0=4x4,fill=iota --image 0.1=2x2x2,fill=iota --image 0.3=4x1,fill=floats --sampler 0.0=nearest,mirror --sampler 0.2=nearest --sampler 0.3=linear,clamp --image 0.5=4x4,mips=2,fill=iota --sampler 0.5=nearest
#version 450
// Texel i of an image that counts has components from 4 i on. Whatever is sampled as it should not be makes a race.
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 2) in;
layout(binding = 0) uniform usampler2D mirrored;
layout(binding = 1) uniform utexture2DArray layers;
layout(binding = 2) uniform sampler repeated;
layout(binding = 3) uniform sampler2D line;
layout(binding = 5) uniform usampler2D levels;
layout(binding = 4) buffer Wrong { uint wrong; };
void expect(bool holds) { if (!holds) wrong = gl_LocalInvocationIndex; }
void main() {
    expect(texture(mirrored, vec2(1.5, 2.5) / 4) == uvec4(36, 37, 38, 39));
    expect(texture(mirrored, vec2(4.5, -0.5) / 4).x == 12);
    expect(textureLodOffset(mirrored, vec2(0.5, 0.5) / 4, 0, ivec2(2, 1)).y == 25);
    expect(textureGather(mirrored, vec2(0.5), 1) == uvec4(37, 41, 25, 21));
    expect(textureLod(usampler2DArray(layers, repeated), vec3(0.25, -0.25, 0.7), 3).z == 26);
    expect(texelFetch(layers, ivec3(1, 0, 1), 0).x == 20);
    expect(textureSize(layers, 0) == ivec3(2));
    float left = texelFetch(line, ivec2(1, 0), 0).x, right = texelFetch(line, ivec2(2, 0), 0).x;
    expect(texture(line, vec2(0.5, 0)).x == 0.5 * left + 0.5 * right);
    expect(texture(line, vec2(0.375, 0.9)).x == left);
    expect(texture(line, vec2(9, 0)) == texelFetch(line, ivec2(3, 0), 0));
    // The next level is the nearest.
    expect(textureLod(levels, vec2(0.3, 0.8), 0.6).x == 72);
}
//~ main: clean
