#version 450
// Texels of a FORMAT, read and written as a VECTOR whose components have BITS, from an IMAGE.
layout(local_size_x = 8) in;
layout(binding = 0, FORMAT) uniform readonly IMAGE from;
layout(binding = 1, FORMAT) uniform writeonly IMAGE to;
layout(binding = 2) readonly buffer Given { VECTOR given[8]; };
layout(binding = 3) buffer Read { uvec4 read[8]; ivec4 sizes; };
void main() {
    // In both rows.
    uint me = gl_LocalInvocationID.x;
    ivec2 place = ivec2(me, me & 1u);
    read[me] = BITS(imageLoad(from, place));
    imageStore(to, place, given[me]);
    if (me == 0) sizes = ivec4(imageSize(from), imageSize(to));
}
