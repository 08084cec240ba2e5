layout(set = 0, binding = 0) devicecoherent buffer Data { uint x; uint y; };
layout(set = 0, binding = 1) buffer Flags { uint f; uint g; };
layout(set = 0, binding = 2) devicecoherent buffer Out { uint a; uint b; };
uint acquire_g() {
    return atomicLoad(g, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
}
void release_f(uint value) {
    atomicStore(f, value, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}
uint relaxed_g() {
    return atomicLoad(g, gl_ScopeDevice, 0, 0);
}
void relaxed_f(uint value) {
    atomicStore(f, value, gl_ScopeDevice, 0, 0);
}
void fence() {
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer,
        gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}
