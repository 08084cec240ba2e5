#version 450
// expect: needs-inputs
// The position along an axis with one workgroup is an index into workgroup memory.
layout(local_size_x = 16) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint row[16];
void main() {
    uint i = gl_GlobalInvocationID.x;
    row[i] = i;
    barrier();
    data[i + 4096u * gl_WorkGroupID.y] = row[15u - gl_LocalInvocationID.x];
}
