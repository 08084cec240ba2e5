// --inputs auto
// Needs inputs: invocations meet only for more than four channels.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint channels; };
layout(binding = 0) buffer Pixels { float pixels[]; };
void main() {
    uint first = 4u * gl_GlobalInvocationID.x;
    for (uint i = 0u; i < channels; ++i) pixels[first + i] *= 0.5;
}
//~ main: needs-inputs
