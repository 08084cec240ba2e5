// --grid 2,1,2 --image 0.0=2x1
// Racy: a depth test of one's own reads and writes a pixel without an order between its fragments.
#version 450
layout(binding = 0, r32ui) uniform coherent uimage2D depths;
layout(location = 0) out vec4 colour;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    uint depth = uint(gl_PrimitiveID);
    if (imageLoad(depths, at).x > depth) {
        discard;
    }
    imageStore(depths, at, uvec4(depth)); //~ race with 9, without a fix; race, without a fix
    colour = vec4(dFdx(gl_FragCoord.x));
}
//~ main: racy
