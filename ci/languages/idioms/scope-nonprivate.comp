#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) nonprivate buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
void main() {
  uint t = gl_LocalInvocationIndex;
  b[t] = t;
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
  o[t] = b[7u - t];
}
