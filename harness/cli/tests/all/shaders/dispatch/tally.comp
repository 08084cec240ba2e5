#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D tally;
void main() {
    imageAtomicAdd(tally, ivec2(0), 1u);
}
