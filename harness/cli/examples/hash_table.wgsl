// Inserts keys into a table with linear probing; 0 is an empty slot.
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> slots: array<atomic<u32>, 8>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let key = keys[id.x];
    for (var probe = 0u; probe < 8u; probe++) {
        let slot = (key + probe) % 8u;
        let old = atomicCompareExchangeWeak(&slots[slot], 0u, key);
        if (old.exchanged || old.old_value == key) {
            found[id.x] = 1u;
            break;
        }
    }
}
