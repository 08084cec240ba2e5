// --grid 4,4,2
// Clean: fragments count themselves by atomics; helpers have no effect, and come to none of this.
#version 450
#extension GL_EXT_demote_to_helper_invocation : require
layout(binding = 0) buffer Count { uint count; uint rest; };
layout(binding = 1) writeonly buffer Seen { uint seen[]; };
void main() {
    if (gl_PrimitiveID == 1) {
        demote;
    }
    atomicAdd(count, 1);
    seen[uint(gl_FragCoord.y) * 4 + uint(gl_FragCoord.x)] = 1;
}
//~ main: clean
