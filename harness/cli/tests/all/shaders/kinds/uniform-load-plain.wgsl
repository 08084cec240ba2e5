// --grid 2
// Racy: one barrier between write and read, none before the next write.
@group(0) @binding(0) var<storage, read_write> next: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
var<workgroup> item: u32;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) l: u32) {
    for (var k = 0u; k < 3u; k++) {
        if (l == 0u) { item = atomicAdd(&next, 1u); } //~ race with 11; fix: put `workgroupBarrier();` before this line
        workgroupBarrier();
        let i = item;
        out[i * 8u + l] = i;
    }
}
//~ main: racy; mended: clean in the orders tried
