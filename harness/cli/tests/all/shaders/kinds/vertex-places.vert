// --grid 4,2,1
// Clean: each vertex of each instance writes a place of its own, and all count themselves.
#version 450
layout(binding = 0) buffer Places { vec4 places[]; };
layout(binding = 1) buffer Count { uint count; };
layout(location = 0) in vec4 position;
layout(location = 0) out vec4 colour;
void main() {
    vec4 place = position * 2.0;
    places[gl_InstanceIndex * 4 + gl_VertexIndex] = place;
    atomicAdd(count, 1);
    gl_Position = place;
    colour = vec4(1.0);
}
//~ main: clean
