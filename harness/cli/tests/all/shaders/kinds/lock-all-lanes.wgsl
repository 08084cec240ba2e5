// --grid 1 --subgroup-size 4
@group(0) @binding(0) var<storage, read_write> locked: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> count: atomic<u32>;
@compute @workgroup_size(4)
fn main() {
    loop { //~ hang with 7, without a fix
        if (atomicExchange(&locked, 1u) == 0u) { break; }
    }
    atomicAdd(&count, 1u);
    atomicStore(&locked, 0u);
}
//~ main: racy
