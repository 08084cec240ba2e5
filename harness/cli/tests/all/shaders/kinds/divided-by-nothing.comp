// --grid 2 --buffer 0.0=zeros:64
// The quotient that is chosen among is defined, or thrown away; the last one is stored, and shifts by 32 or more decide.
#version 460
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer In { uint given[]; };
layout(std430, binding = 1) buffer Out { uvec2 results[]; };

void main() {
    uint me = gl_GlobalInvocationID.x, by = given[me];
    uint chosen = mix(me / by, 7u, by == 0u);
    results[me].x = chosen + me / max(by, 1u);
    results[me].y = me % by; //~ undefined-behaviour, without a fix
    if ((1u << (32u + by)) == 1u) results[me].x = 0u; //~ undefined-behaviour, without a fix
}
//~ main: racy
