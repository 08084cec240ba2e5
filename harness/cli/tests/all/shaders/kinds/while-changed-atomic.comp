// --grid 1 --buffer 0.0=random:64
// Clean: until nothing changes, the flag by atomics.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer X { uint x[]; };
shared uint s[8];
shared uint changed;
void main() {
    uint t = gl_LocalInvocationIndex;
    s[t] = x[t] & 7u;
    bool again = true;
    while (again) {
        barrier();
        if (t == 0) changed = 0;
        uint m = max(s[t], s[(t + 1) & 7u]);
        barrier();
        if (m != s[t]) { s[t] = m; atomicOr(changed, 1u); }
        barrier();
        again = changed != 0u;
    }
    x[t] = s[t];
}
//~ main: clean
