#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) devicecoherent buffer Data { uint x[]; };
layout(set = 0, binding = 1) buffer Flag { uint f; };
layout(set = 0, binding = 2) buffer Out { uint a; float b[]; };
void main() {
    uint seen = atomicLoad(f, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
    uint y = (seen >> 1) / 7u;
    x[seen >> 3] = y;
    a = y + bitfieldExtract(seen, 3, 4);
    b[seen & 15u] = fma(2.0, sqrt(b[0]), float(seen));
}
