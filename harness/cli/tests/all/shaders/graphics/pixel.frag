#version 450
// $ check --grid 2,1,2
// exit code 1
// > invocation fragment 0 of pixel (0,0) writes it, invocation fragment 1 of pixel (0,0)
// $ race
// exit code 3
// > needs-inputs
// > with 2 fragments of each of 2 pixels (--grid 2,1,2): data race on `X.x[0]`
// Without a grid, two fragments of two pixels are tried: a single fragment shares no memory.
layout(set = 0, binding = 0) buffer X { uint x[]; };
void main() { x[uint(gl_FragCoord.x)] = uint(gl_PrimitiveID); }
