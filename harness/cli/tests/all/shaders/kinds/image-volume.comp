// --image 0.0=4x4x4 --image 0.1=4x4x4 --image 0.2=4x4x6 --image 0.3=4x4
#version 450
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(binding = 0, r32f) uniform image3D volume;
layout(binding = 1, rg32ui) uniform uimage2DArray layers;
layout(binding = 2, rgba16f) uniform imageCube cube;
layout(binding = 3, rgba8ui) uniform uimage2D one_layer;
void main() {
    ivec3 at = ivec3(gl_LocalInvocationID);
    imageStore(volume, at, vec4(at.x + 10 * at.y + 100 * at.z, 2, 3, 4));
    imageStore(layers, at, uvec4(at.z, 7, 8, 9));
    imageStore(cube, at, vec4(0.1));
    // What a format does not have is not there; what it has is rounded.
    bool right = imageLoad(volume, at) == vec4(at.x + 10 * at.y + 100 * at.z, 0, 0, 1)
        && imageLoad(layers, at) == uvec4(at.z, 7, 0, 1) && imageLoad(cube, at).x == unpackHalf2x16(packHalf2x16(vec2(0.1))).x;
    if (!right) imageStore(volume, ivec3(0), vec4(1));
    // Whoever is above writes the same texel.
    imageStore(one_layer, at.xy, uvec4(at.z)); //~ race, without a fix
}
//~ main: racy
