// F5: `devicecoherent` on a block of buffer_reference, and on its member.
// glslangValidator -V --target-env vulkan1.2 F5.comp -o F5.spv && spirv-dis F5.spv
#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_buffer_reference : require

layout(local_size_x = 1) in;
layout(buffer_reference, std430) devicecoherent buffer OnBlock { uint v; };
layout(buffer_reference, std430) buffer OnMember { devicecoherent uint v; };
layout(push_constant) uniform Addresses { OnBlock block; OnMember member; };

void main() {
    block.v = 1;
    member.v = 2;
}
