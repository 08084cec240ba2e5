// --grid 1
#version 450
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 8) in;
layout(binding = 0) uniform texture2D tex[];
layout(binding = 1) uniform sampler smp;
layout(binding = 2, rgba8) uniform image2DArray imgs[3];
layout(binding = 3) buffer O { vec4 v[]; };
void main() {
  vec4 c = textureLod(sampler2D(tex[nonuniformEXT(gl_LocalInvocationIndex % 2)], smp), vec2(0.5), 0);
  c += texelFetch(tex[0], ivec2(1), 0);
  imageStore(imgs[1], ivec3(gl_LocalInvocationID.x, 0, 1), c);
  v[gl_LocalInvocationIndex] = c * textureSize(tex[0], 0).x;
}
//~ main: clean
