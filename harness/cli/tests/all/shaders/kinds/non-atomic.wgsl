// --grid 2
// Racy: a plain counter in workgroup memory.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: array<u32>;
var<workgroup> n: u32;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(global_invocation_id) g: vec3u, @builtin(workgroup_id) w: vec3u) {
    if ((x[g.x] & 1u) == 0u) { n += 1u; } //~ race; fix: declare the element `atomic` and use `atomicAdd` instead of this load and store
    workgroupBarrier();
    if (t == 0u) { total[w.x] = n; }
}
//~ main: racy; mended: clean
