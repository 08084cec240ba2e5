// --grid 2,1,2
#version 450
layout(binding = 0, r32ui) uniform uimage2D count;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    imageStore(count, at, uvec4(imageLoad(count, at).x + 1));
}
