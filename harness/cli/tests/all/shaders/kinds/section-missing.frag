// --grid 2,1,2
// Racy: the mode alone keeps nobody apart.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID; //~ race, without a fix
}
//~ main: racy
