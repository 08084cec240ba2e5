#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) devicecoherent buffer Data { uint x[2]; };
layout(set = 0, binding = 1) buffer Flag { uint f; };
layout(set = 0, binding = 2) buffer Out { uint a; };
void main() {
    uint at = atomicLoad(f, gl_ScopeDevice, 0, 0) & 1u;
    uint y = x[0];
    x[at] = 5u;
    a = y;
}
