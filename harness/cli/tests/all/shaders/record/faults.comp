// Fifteen faults inside a shader. FAULT selects one: an even number is right, and the next odd one has the fault. All words are 1.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 16) in;
layout(constant_id = 0) const int FAULT = 0;
layout(set = 0, binding = 0) nonprivate buffer Data { uint data[64]; };
layout(set = 0, binding = 1) nonprivate buffer Result { uint result[64]; };
shared uint tile[32];

#define BAD ((FAULT & 1) != 0)

void main() {
    uint i = gl_LocalInvocationID.x, g = gl_GlobalInvocationID.x;
    if (FAULT / 2 == 0) { // No barrier between a write and a read of shared memory.
        tile[i] = g;
        if (!BAD) barrier();
        result[g] = tile[15 - i];
    } else if (FAULT / 2 == 1) { // A barrier before the write instead of after it.
        if (BAD) barrier();
        tile[i] = g;
        if (!BAD) barrier();
        result[g] = tile[(i + 1) & 15];
    } else if (FAULT / 2 == 2) { // All invocations write one word.
        result[BAD ? 0 : g] = g;
    } else if (FAULT / 2 == 3) { // An update in place reads its neighbour.
        uint next = data[(g + 1) & 31];
        if (BAD) data[g] = next;
        else result[g] = next;
    } else if (FAULT / 2 == 4) { // A histogram without atomic operations.
        if (BAD) result[g & 3]++;
        else atomicAdd(result[g & 3], 1);
    } else if (FAULT / 2 == 5) { // Shared memory is used again without a second barrier.
        for (uint round = 0; round < 2; round++) {
            tile[i] = g + round;
            barrier();
            result[g] = tile[i ^ 8];
            if (!BAD) barrier();
        }
    } else if (FAULT / 2 == 6) { // The last workgroup reads sums that were not released.
        if (i == 0) {
            data[gl_WorkGroupID.x] = g;
            uint before = BAD ? atomicAdd(result[62 + (FAULT & 1)], 1)
                              : atomicAdd(result[62 + (FAULT & 1)], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                                          gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
            if (before == 2) result[0] = data[0] + data[1];
        }
    } else if (FAULT / 2 == 7) { // A plain read of a word that others update atomically.
        atomicAdd(result[32], g);
        if (!BAD) result[g] = atomicAdd(result[32], 0);
        else result[g] = result[32];
    } else if (FAULT / 2 == 8) { // A reduction without barriers, as if the invocations ran in lockstep.
        tile[i] = g;
        barrier();
        for (uint step = 8; step > 0; step >>= 1) {
            if (i < step) tile[i] += tile[i + step];
            if (!BAD) barrier();
        }
        if (i == 0) result[gl_WorkGroupID.x] = tile[0];
    } else if (FAULT / 2 == 9) { // Each invocation writes one element too many.
        for (uint at = 0; at < (BAD ? 3u : 2u); at++) result[(g * 2 + at) & 63] = g;
    } else if (FAULT / 2 == 10) { // One invocation initializes what all read.
        if (i == 0) tile[0] = data[0];
        if (!BAD) barrier();
        result[g] = tile[0];
    } else if (FAULT / 2 == 11) { // Workgroups write by the local index.
        result[BAD ? i : g] = g;
    } else if (FAULT / 2 == 12) { // A flag that is stored without a release.
        if (g == 0) {
            data[0] = 7;
            if (BAD) atomicStore(data[32 + (FAULT & 1)], 5u, gl_ScopeDevice, 0, 0);
            else atomicStore(data[32 + (FAULT & 1)], 5u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
        } else if (g == 16) {
            uint flag = atomicLoad(data[32 + (FAULT & 1)], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
            if (flag == 5) result[16] = data[0];
        }
    } else if (FAULT / 2 == 13) { // A transposed tile is read before it is complete.
        tile[(i & 3) * 4 + i / 4] = g;
        if (!BAD) barrier();
        result[g] = tile[i];
    } else if (FAULT / 2 == 14) { // A prefix sum in one buffer: reads and writes of a step overlap.
        tile[i] = g;
        barrier();
        for (uint step = 1; step < 16; step <<= 1) {
            uint sum = tile[i] + (i >= step ? tile[i - step] : 0);
            if (!BAD) barrier();
            tile[i] = sum;
            barrier();
        }
        result[g] = tile[i];
    }
}
