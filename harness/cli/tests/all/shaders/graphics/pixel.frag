#version 450
// $ check --grid 2,1,2
// exit code 1
// > invocation fragment 0 of pixel (0,0) writes it, invocation fragment 1 of pixel (0,0)
// $ race
// exit code 3
// > needs-inputs
// >   race for some inputs: data race on `X.x[0]`
// > supply it with --grid 2,1,2
// Without a grid, two fragments of two pixels are tried: a single fragment shares no memory.
layout(set = 0, binding = 0) buffer X { uint x[]; };
void main() { x[uint(gl_FragCoord.x)] = uint(gl_PrimitiveID); }
