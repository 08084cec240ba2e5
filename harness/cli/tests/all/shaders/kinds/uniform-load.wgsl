// --grid 2
// Clean: workgroupUniformLoad has barriers on both sides.
@group(0) @binding(0) var<storage, read_write> next: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
var<workgroup> item: u32;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) l: u32) {
    loop {
        if (l == 0u) { item = atomicAdd(&next, 1u); }
        let i = workgroupUniformLoad(&item);
        if (i >= 6u) { break; }
        out[i * 8u + l] = i;
    }
}
//~ main: clean in the orders tried
