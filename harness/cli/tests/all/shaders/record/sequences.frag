#version 450
// Mode 1 reads an input attachment.
layout(location = 0) out vec4 colour;
#if MODE == 1
layout(input_attachment_index = 0, set = 0, binding = 5) uniform subpassInput before;
#endif
void main() {
#if MODE == 1
    colour = subpassLoad(before) / 2;
#else
    colour = vec4(1);
#endif
}
