// --grid 2
// Clean: every access of the payload is atomic, and a reader that met a writer tries again.
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) buffer Data { uint seq; uint a; uint b; uint ok; };
#define RLX gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed
void fence() { memoryBarrier(gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease); }
void main() {
    if (gl_WorkGroupID.x == 0) {
        for (uint i = 1; i < 4; i++) {
            atomicStore(seq, 2 * i - 1, RLX);
            fence();
            atomicStore(a, i, RLX);
            atomicStore(b, i, RLX);
            fence();
            atomicStore(seq, 2 * i, RLX);
        }
    } else {
        uint s, x, y;
        do {
            s = atomicLoad(seq, RLX);
            fence();
            x = atomicLoad(a, RLX);
            y = atomicLoad(b, RLX);
            fence();
        } while ((s & 1u) != 0u || s != atomicLoad(seq, RLX));
        ok = x == y ? 1 : 2;
    }
}
//~ main: clean
