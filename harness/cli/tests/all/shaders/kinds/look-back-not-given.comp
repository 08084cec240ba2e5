// --inputs auto
// Clean: with three workgroups, one sees the aggregate of its predecessor.
#version 450
layout(local_size_x = 1) in;
struct Part { uint aggregate; uint prefix; uint flag; };
layout(binding = 0) writeonly buffer Out { uint result[]; };
layout(binding = 1) coherent buffer Parts { uint next; Part parts[]; };
void main() {
    uint own = atomicAdd(next, 1u);
    parts[own].aggregate = 1u;
    if (own == 0u) parts[own].prefix = 1u;
    memoryBarrierBuffer();
    atomicExchange(parts[own].flag, own == 0u ? 2u : 1u);
    uint sum = 0u;
    for (int at = int(own) - 1; at >= 0;) {
        uint flag = atomicOr(parts[at].flag, 0u);
        memoryBarrierBuffer();
        if (flag == 2u) {
            sum += parts[at].prefix;
            break;
        } else if (flag == 1u) {
            sum += parts[at].aggregate;
            at--;
        }
    }
    if (own != 0u) {
        parts[own].prefix = sum + 1u;
        memoryBarrierBuffer();
        atomicExchange(parts[own].flag, 2u);
    }
    result[own] = sum;
}
//~ main: clean in the orders tried
