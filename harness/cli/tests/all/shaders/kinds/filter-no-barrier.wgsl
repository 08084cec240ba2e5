// --inputs auto
// Racy for all widths that reach another element.
@group(0) @binding(0) var<uniform> width: u32;
@group(0) @binding(1) var<storage, read_write> data: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(local_invocation_index) lane: u32) {
    tile[lane] = data[at.x];
    var sum = 0.0;
    for (var i = 0u; i < width; i++) { //~ fix: put `workgroupBarrier();` before the loop in this line
        sum += tile[min(lane + i - (width - 1u) / 2u, 63u)]; //~ race with 8
    }
    data[at.x] = sum;
}
//~ main: racy; mended: clean
