#version 450
// expect: needs-inputs
layout(local_size_x = 8, local_size_y = 4) in;
layout(push_constant) uniform P { int step, tile; };
layout(binding = 0, r32ui) uniform writeonly uimage2D target;
void main() {
    ivec3 at = ivec3(gl_GlobalInvocationID);
    imageStore(target, ivec2(at.x * step + at.y * tile, 0), uvec4(at.x));
}
