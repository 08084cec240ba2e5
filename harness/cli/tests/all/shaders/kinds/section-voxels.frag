// --grid 2,1,2 --image 0.0=2x2x1
// Racy: voxels that are not coherent, in a section.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(sample_interlock_unordered) in;
layout(binding = 0, r32ui) uniform uimage3D voxels;
void main() {
    ivec3 at = ivec3(gl_FragCoord.xy, 0);
    beginInvocationInterlockARB();
    uint there = imageLoad(voxels, at).x; //~ race with 11
    imageStore(voxels, at, uvec4(there + 1)); //~ unpublished-read with 10; fix: declare `voxels` coherent
    endInvocationInterlockARB();
}
//~ main: racy; mended: clean
