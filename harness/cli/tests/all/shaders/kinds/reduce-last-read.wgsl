// --grid 2 --buffer 0.0=floats:256
// Racy: all lanes read sum[0] without a barrier behind the last addition.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scaled: array<f32>;
var<workgroup> sum: array<f32, 16>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    sum[l] = data[id.x];
    for (var s = 8u; s > 0u; s >>= 1u) { //~ fix: put `workgroupBarrier();` after the loop in this line
        workgroupBarrier();
        if (l < s) { sum[l] += sum[l + s]; } //~ race with 13
    }
    scaled[id.x] = data[id.x] / sum[0];
}
//~ main: racy; mended: clean
