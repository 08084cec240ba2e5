#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
// One workgroup sends, the other looks twice: with relaxed atomics the data may come behind the flag.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Mail { uint data; uint flag; uint seen_flag; uint seen_data; } mail;
void main() {
    if (gl_WorkGroupID.x == 0u) {
        atomicStore(mail.data, 1u, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        atomicStore(mail.flag, 1u, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    } else {
        uint flag = atomicLoad(mail.flag, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        mail.seen_data = atomicLoad(mail.data, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        mail.seen_flag = flag;
    }
}
