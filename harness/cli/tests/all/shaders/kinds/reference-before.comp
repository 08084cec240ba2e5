// --grid 1 --push 8=100 --bind P.base=B --buffer B=zeros:16
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Out { uint v[]; };
layout(push_constant) uniform P { uint64_t base; uint first; };
void main() {
  // The address lies before the buffer, which is accessed from its beginning.
  Out o = Out(base - uint64_t(first) * 4ul);
  o.v[gl_GlobalInvocationID.x + first] = 1u;
}
//~ main: clean
