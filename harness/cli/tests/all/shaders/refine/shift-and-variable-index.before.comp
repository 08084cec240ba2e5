// open: all
// expect: refines
// why: equal operations on equal numbers have equal results, also as positions and floats
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) devicecoherent buffer Data { uint x[]; };
layout(set = 0, binding = 1) buffer Flag { uint f; };
layout(set = 0, binding = 2) buffer Out { uint a; float b[]; };
void main() {
    uint seen = atomicLoad(f, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
    x[seen >> 3] = (seen >> 1) / 7u;
    a = x[seen >> 3] + bitfieldExtract(seen, 3, 4);
    b[seen & 15u] = sqrt(b[0]) * 2.0 + float(seen);
}
