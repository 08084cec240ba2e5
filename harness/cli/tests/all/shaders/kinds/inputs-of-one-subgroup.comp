// --inputs auto
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint total;
void main() {
    uint sum = subgroupAdd(data[gl_GlobalInvocationID.x]);
    if (subgroupElect()) total = sum;
    barrier();
    data[gl_GlobalInvocationID.x] = total;
}
//~ main: needs-inputs
