// --push 0=20 --subgroup-size 8
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { uint width[]; };
layout(binding = 1) buffer Out { uint dst[]; };
layout(push_constant) uniform P { uint rows; };
shared uint sh_width[32];
void main() {
    uint lane = gl_LocalInvocationIndex;
    if (lane < rows)
        sh_width[lane] = width[lane];
    barrier();
    uint n = 0;
    for (uint i = 0; i < 32; ++i)
        for (uint x = 0; x < sh_width[i]; ++x)
            n += 1;
    dst[lane] = n;
}
