#version 450
// $ race --grid 2
// exit code 2
// > lanes.frag:8: cannot analyze: OpGroupNonUniformIAdd in a fragment shader: the invocations of a subgroup are unknown
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(set = 0, binding = 0) buffer X { uint x; };

void main() { x = subgroupAdd(1); }
