// --grid 2
// Racy: atomicCompareExchangeWeak may fail although the values are equal.
var<workgroup> claimed: array<atomic<u32>, 4>;
@group(0) @binding(0) var<storage, read_write> loser: u32;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lane: u32) {
    let r = atomicCompareExchangeWeak(&claimed[lane], 0u, 1u);
    if (!r.exchanged) { loser = lane; } //~ race; fix: make this access atomic (it remains unordered)
}
//~ main: racy; mended: clean in the orders tried
