// --grid 2,1,2 --image 0.0=2x1
// Clean: the same by one atomic.
#version 450
layout(binding = 0, r32ui) uniform coherent uimage2D depths;
layout(location = 0) out vec4 colour;
void main() {
    uint depth = uint(gl_PrimitiveID);
    if (imageAtomicMax(depths, ivec2(gl_FragCoord.xy), depth) > depth) {
        discard;
    }
    colour = vec4(fwidth(gl_FragCoord.y));
}
//~ main: clean
