#version 450
// Each of 64 invocations draws a ticket: who gets which is a matter of the order, and there are too many orders to list.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Tickets { uint next; uint drawn[64]; } tickets;
void main() {
    tickets.drawn[gl_WorkGroupID.x] = atomicAdd(tickets.next, 1u);
}
