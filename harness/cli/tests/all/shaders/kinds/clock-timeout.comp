// --grid 2
// Clean: a spin with a limit by the clock.
#version 450
#extension GL_EXT_shader_realtime_clock : require
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer F { uint flag; };
layout(binding = 1) writeonly buffer O { uint o[]; };
void main() {
    if (gl_WorkGroupID.x == 0) { atomicExchange(flag, 1u); return; }
    uvec2 begin = clockRealtime2x32EXT();
    while (atomicOr(flag, 0u) == 0u) {
        if (clockRealtime2x32EXT().x - begin.x > 1000u) break;
    }
    o[0] = 1;
}
//~ main: clean in the orders tried
