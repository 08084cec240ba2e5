#version 450
// expect: racy
// A tile has an element for each of 16 x 16 invocations; the chosen bound of 32 leaves it at one tile.
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform Parameters { int surfels, width, height; };
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Depth { float depth[]; };
shared float tile[256 * 2];
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    int local = int(gl_LocalInvocationIndex);
    float least = 1e20;
    for (int first = 0; first < surfels; first += 256) {
        if (first + local < surfels) {
            tile[local * 2] = source[(first + local) * 2];
            tile[local * 2 + 1] = source[(first + local) * 2 + 1];
        }
        barrier();
        int count = min(256, surfels - first);
        for (int i = 0; i < count; ++i) least = min(least, tile[i * 2] + tile[i * 2 + 1]);
    }
    if (at.x < width && at.y < height) depth[at.y * width + at.x] = least;
}
