#version 450
// expect: needs-inputs
// args: --inputs zeros
// The workgroups take different tickets, and all of them write one element.
layout(local_size_x = 1) in;
layout(binding = 0) buffer Data { uint next; uint last; };
void main() {
    uint ticket = atomicAdd(next, 1);
    last = ticket;
}
