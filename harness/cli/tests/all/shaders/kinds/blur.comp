// --grid 2,2 --image 0.0=16x16,fill=floats --image 0.1=16x16
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) uniform readonly image2D source;
layout(binding = 1, rgba8) uniform writeonly image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec4 sum = vec4(0);
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            sum += imageLoad(source, clamp(at + ivec2(x, y), ivec2(0), imageSize(source) - 1));
    imageStore(target, at, sum / 9.0);
}
//~ main: clean
