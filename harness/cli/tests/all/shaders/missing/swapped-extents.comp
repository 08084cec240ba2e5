#version 450
// expect: needs-inputs
// Rows of `height` elements overlap if they have `width` elements and there are more of these.
layout(local_size_x = 8, local_size_y = 8) in;
layout(push_constant) uniform Size { uint width; uint height; };
layout(std430, binding = 0) writeonly buffer Out { float pixels[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x < width && at.y < height) pixels[at.y * height + at.x] = 1.0;
}
