// --grid 2
// Clean: an exchange that fails although the values are equal still returns the old value.
var<workgroup> claimed: array<atomic<u32>, 4>;
@group(0) @binding(0) var<storage, read_write> loser: u32;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lane: u32) {
    let r = atomicCompareExchangeWeak(&claimed[lane], 0u, 1u);
    if (r.old_value != 0u) { loser = lane; }
}
//~ main: clean in the orders tried
