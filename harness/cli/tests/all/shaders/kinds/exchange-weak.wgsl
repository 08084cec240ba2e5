// --grid 2
// Clean: slots are claimed by atomicCompareExchangeWeak.
@group(0) @binding(0) var<storage, read_write> owner: array<atomic<u32>, 16>;
@group(0) @binding(1) var<storage, read_write> slot: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var at = (id.x * 7u) % 16u;
    loop {
        let r = atomicCompareExchangeWeak(&owner[at], 0u, id.x + 1u);
        if (r.exchanged) { break; }
        at = (at + 1u) % 16u;
    }
    slot[at] = id.x;
}
//~ main: clean in the orders tried
