// --grid 2 --image 0.0=16x8,fill=floats --image 0.1=16x8
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8_snorm) uniform readonly image2D picture;
layout(binding = 1, r16f) uniform writeonly image2D mask;
layout(binding = 2) buffer Places { uint count; uint place[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (imageLoad(picture, at).x > 0.5) {
        place[atomicAdd(count, 1)] = at.x | at.y << 16;
        imageStore(mask, at, vec4(1));
    }
}
//~ main: clean in the orders tried
