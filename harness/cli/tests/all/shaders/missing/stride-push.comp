#version 450
// expect: clean
// With a pitch of zero all rows would be one.
layout(local_size_x = 8, local_size_y = 4) in;
layout(push_constant) uniform Shape { uint pitch; };
layout(binding = 0) buffer Image { uint texel[]; };
void main() { texel[gl_GlobalInvocationID.y * pitch + gl_GlobalInvocationID.x] = gl_WorkGroupID.x; }
