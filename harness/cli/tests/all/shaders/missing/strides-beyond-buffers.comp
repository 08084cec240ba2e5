#version 450
// expect: needs-inputs
// Offsets beyond the assumed buffers hide rows that overlap, until the buffers grow.
layout(local_size_x = 1024) in;
layout(binding = 0) readonly buffer In { float from[]; };
layout(binding = 1) writeonly buffer Out { float to[]; };
layout(push_constant) uniform P {
    uint in_offset, out_offset;
    int ne00, ne01, ne02;
    uint nb00, nb01, nb02, nb03;
    int ne0, ne1, ne2;
    uint nb0, nb1, nb2, nb3;
};
void main() {
    uvec3 group = gl_WorkGroupID;
    int n = int(group.z) * ne02 * ne01 * ne00 + int(group.y) * ne01 * ne00 + int(group.x) * ne00;
    int i3 = n / (ne2 * ne1 * ne0);
    int i2 = (n - i3 * ne2 * ne1 * ne0) / (ne1 * ne0);
    int i1 = (n - i3 * ne2 * ne1 * ne0 - i2 * ne1 * ne0) / ne0;
    int i0 = n - i3 * ne2 * ne1 * ne0 - i2 * ne1 * ne0 - i1 * ne0;
    uint row = (i3 * nb3 + i2 * nb2 + i1 * nb1 + i0 * nb0) / 4 + out_offset;
    for (uint i = gl_LocalInvocationID.x; i < ne00; i += gl_WorkGroupSize.x)
        to[row + i] = from[(group.z * nb03 + group.y * nb02 + group.x * nb01 + i * nb00) / 4 + in_offset];
}
