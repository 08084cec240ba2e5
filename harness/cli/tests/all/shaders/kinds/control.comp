// --grid 2 --buffer 0.0=iota:1024
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer In { int codes[]; };
layout(binding = 1) buffer Out { int values[]; };
int run(int code, int depth) {
    switch (code & 7) {
    case 0: return 1;
    case 1:
    case 2: code += 3;
    case 3: break;
    case 4: { for (int i = 0; i < depth; i++) { if (i == 3) continue; if (i > 6) break; code ^= i; } } break;
    default: do { code >>= 1; if (code == 5) return -1; } while (code > 2);
    }
    return code;
}
void main() {
    int at = int(gl_GlobalInvocationID.x);
    if (at >= 30) return;
    int sum = 0;
    for (int i = 0; i < 4; i++)
        for (int j = i; j < 4; j++) {
            if (codes[(at + i * j) % 256] == 7) continue;
            sum += run(codes[(at + i * j) % 256], j);
            if (sum > 100) { values[at] = sum; return; }
        }
    values[at] = sum;
}
//~ main: clean
