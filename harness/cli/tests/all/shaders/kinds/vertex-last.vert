// --grid 4
// Racy: whoever comes last writes what others have read and written without an order.
#version 450
layout(binding = 0) buffer Count { uint count; uint sum; };
void main() {
    sum += gl_VertexIndex;
    if (atomicAdd(count, 1) == 3) {
        sum = 0;
    }
    gl_Position = vec4(0.0);
}
