// --grid 4 --bind push@0=head
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Node { uint value; uint count; uint64_t pad; };
layout(push_constant) uniform Push { Node head; };
void main() {
    Node mine = head + gl_GlobalInvocationID.x;
    mine.value = gl_GlobalInvocationID.x;
    Node same = Node(uint64_t(head) + 16ul * gl_GlobalInvocationID.x);
    same.count = mine.value + 1;
}
//~ main: clean
