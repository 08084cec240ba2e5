// --grid 4
// Racy: whoever comes last writes what others have read and written without an order.
#version 450
layout(binding = 0) buffer Count { uint count; uint sum; };
void main() {
    sum += gl_VertexIndex; //~ race; fix: use `atomicAdd` instead of this load and store
    if (atomicAdd(count, 1) == 3) {
        sum = 0;
    }
    gl_Position = vec4(0.0);
}
//~ main: racy; mended: clean
