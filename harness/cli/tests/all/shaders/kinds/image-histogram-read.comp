// --grid 2 --image 0.0=16 --image 0.1=64,fill=random --image 0.2=64
#version 450
layout(local_size_x = 32) in;
layout(binding = 0, r32ui) uniform uimageBuffer histogram;
layout(binding = 1) uniform usamplerBuffer data;
layout(binding = 2, r32ui) uniform uimageBuffer seen;
void main() {
    int me = int(gl_GlobalInvocationID.x), bin = int(texelFetch(data, me).x & 15u);
    imageAtomicAdd(histogram, bin, 1u); //~ race with 11
    barrier(); //~ fix: run the code after this barrier in a second dispatch: a barrier orders the invocations of one workgroup, and no workgroup waits for others
    imageStore(seen, me, imageLoad(histogram, bin));
}
//~ main: racy
