#version 430
layout(local_size_x = 16) in;
layout(binding = 0) uniform sampler2D colours;
layout(binding = 0) buffer Rows { float rows[]; };
uniform int level;
void main() { rows[gl_GlobalInvocationID.x] = texelFetch(colours, ivec2(0), level).x; }
