#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer In { uint word[]; } given;
layout(binding = 1) buffer Out { uint low[32]; uint high[32]; uint within[32]; int least[32]; int most[32]; int inside[32]; } found;
void main() {
    uint at = gl_LocalInvocationIndex;
    uint a = given.word[at];
    uint b = given.word[32 + at];
    found.low[at] = min(a, b);
    found.high[at] = max(a, b);
    found.within[at] = clamp(a, b & 0xffffu, b | 0xffffu);
    found.least[at] = min(int(a), int(b));
    found.most[at] = max(int(a), int(b));
    found.inside[at] = clamp(int(a), int(b | 0x80000000u), int(b & 0x7fffffffu));
}
