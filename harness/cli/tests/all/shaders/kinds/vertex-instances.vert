// --grid 4,2,1
// Racy: instances write the places of one another.
#version 450
layout(binding = 0) buffer Places { vec4 places[]; };
layout(location = 0) in vec4 position;
void main() {
    places[gl_VertexIndex] = position * float(gl_InstanceIndex); //~ race, without a fix
    gl_Position = position;
}
//~ main: racy
