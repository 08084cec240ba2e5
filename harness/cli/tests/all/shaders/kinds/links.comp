// --grid 4 --bind push@0=L --bind push@8=O
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 8) in;
layout(buffer_reference, scalar) buffer Link;
layout(buffer_reference, scalar) buffer Link { vec3 p; Link next; uint n; };
layout(buffer_reference, scalar) writeonly buffer Out { uint v[]; };
layout(push_constant, scalar) uniform Push { Link list; Out sums; uint k[3]; } pc;
void main() {
    Link at = pc.list;
    uint sum = 0;
    for (int i = 0; i < 3 && any(notEqual(uvec2(at), uvec2(0))); ++i) { sum += at.n; at = at.next; }
    pc.sums.v[gl_GlobalInvocationID.x] = sum + pc.k[gl_LocalInvocationID.x % 3];
}
//~ main: clean
