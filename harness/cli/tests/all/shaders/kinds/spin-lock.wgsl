// --grid 3
// Racy: atomics of WGSL order nothing but themselves.
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> sum: u32;
@compute @workgroup_size(1)
fn main() {
    loop {
        let r = atomicCompareExchangeWeak(&lock, 0u, 1u);
        if (r.exchanged) { break; }
    }
    sum += 1u; //~ race; fix: declare the element `atomic` and use `atomicAdd` instead of this load and store
    atomicStore(&lock, 0u);
}
//~ main: racy; mended: clean in the orders tried
