// --grid 1 --buffer 0.0=random:64
// Racy: several set the flag by plain writes of one value.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer X { uint x[]; };
shared uint s[8];
shared bool changed;
void main() {
    uint t = gl_LocalInvocationIndex;
    s[t] = x[t] & 7u;
    bool again = true;
    while (again) {
        barrier();
        if (t == 0) changed = false;
        uint m = max(s[t], s[(t + 1) & 7u]);
        barrier();
        if (m != s[t]) { s[t] = m; changed = true; } //~ race, without a fix
        barrier();
        again = changed;
    }
    x[t] = s[t];
}
//~ main: racy
