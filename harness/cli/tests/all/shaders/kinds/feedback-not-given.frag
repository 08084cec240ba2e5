// --grid 2,2,1
// Refused: an index by what a fragment is given, of which nothing is said.
#version 450
layout(early_fragment_tests) in;
layout(binding = 0) buffer Feedback { uint seen[]; };
layout(binding = 1) buffer Stats { uint written; };
layout(location = 0) flat in uint object;
layout(location = 0) out vec4 colour;
void main() {
    if (seen[object] == 0) { seen[object] = 1; written++; }
    colour = vec4(1);
}
//~ main: refused (feedback-not-given.frag:10: cannot analyze: an index is computed from floats or opaque values, such as the input at location 0: set it under [input.0] in a --case file)
