// --grid 2
// Clean: counting in workgroup memory, then one sum.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: atomic<u32>;
var<workgroup> n: atomic<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(global_invocation_id) g: vec3u) {
    if ((x[g.x] & 1u) == 0u) { atomicAdd(&n, 1u); }
    workgroupBarrier();
    if (t == 0u) { atomicAdd(&total, atomicLoad(&n)); }
}
//~ main: clean
