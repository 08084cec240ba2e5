#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
// The same with release and acquire: whoever sees the flag sees the data.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Mail { uint data; uint flag; uint seen_flag; uint seen_data; } mail;
void main() {
    if (gl_WorkGroupID.x == 0u) {
        atomicStore(mail.data, 1u, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        atomicStore(mail.flag, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
    } else {
        uint flag = atomicLoad(mail.flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire);
        mail.seen_data = atomicLoad(mail.data, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        mail.seen_flag = flag;
    }
}
