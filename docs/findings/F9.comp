// F9: `++` on a variable that is declared coherent, and the same in words.
// glslangValidator -V --target-env vulkan1.2 F9.comp -o F9.spv && spirv-dis F9.spv
#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require

layout(local_size_x = 1) in;
layout(binding = 0) queuefamilycoherent buffer Data { uint x; uint y; };

void main() {
    x++;
    y = y + 1;
}
