#version 460
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) devicecoherent buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
layout(set = 0, binding = 2) buffer FB { uint f; };
void main() {
  uint t = gl_LocalInvocationIndex;
  if (gl_WorkGroupID.x == 0u) { b[0] = 42u; atomicStore(f, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease); }
  else if (atomicLoad(f, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 1u) { o[0] = b[0]; }
}
