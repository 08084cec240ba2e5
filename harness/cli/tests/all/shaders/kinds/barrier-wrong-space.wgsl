// --grid 2
// Racy: storageBarrier orders no workgroup memory.
@group(0) @binding(0) var<storage, read_write> o: array<u32>;
var<workgroup> s: array<u32, 8>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(global_invocation_id) g: vec3u) {
    s[t] = t; //~ race with 9; fix: put `workgroupBarrier();` after this line
    storageBarrier();
    o[g.x] = s[7u - t];
}
//~ main: racy; mended: clean
