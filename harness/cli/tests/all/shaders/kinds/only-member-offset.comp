// --grid 1 --assert block==7
#version 450
// The only member of the block, not at its start, stands for the block.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) buffer Block { layout(offset = 16) uint value; } block;
void main() { block.value = 7; }
//~ main: clean
