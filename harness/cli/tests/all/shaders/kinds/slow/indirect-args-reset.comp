// --grid 4
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { uint visible[]; };
layout(binding = 1) buffer Args { uint count; uint instances; uint first; uint base; } args;
layout(binding = 2) writeonly buffer List { uint list[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i == 0u) { args.instances = 0u; args.count = 36u; } //~ race with 11; fix: use `atomicExchange` for this store, which several invocations may make
    barrier(); //~ fix: run the code after this barrier in a second dispatch: a barrier orders the invocations of one workgroup, and no workgroup waits for others
    if (visible[i] == 0u) { uint at = atomicAdd(args.instances, 1u); list[at] = i; } //~ race
}
//~ main: racy
