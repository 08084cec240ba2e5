// --grid 1,1 --image 0.0=16x16,mips=2,fill=floats --image 0.2=8x8
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D picture;
layout(binding = 1) uniform samplerBuffer table;
layout(binding = 2, r11f_g11f_b10f) uniform writeonly image2D target;
void main() {
    vec2 at = (vec2(gl_GlobalInvocationID.xy) + 0.5) / 8.0;
    vec4 colour = textureLod(picture, at, 0.0) + texelFetch(picture, ivec2(gl_LocalInvocationID.xy), 1);
    colour += textureGather(picture, at, 1) * texelFetch(table, 3).x;
    imageStore(target, ivec2(gl_GlobalInvocationID.xy), colour * textureSize(picture, 0).x);
}
//~ main: clean
