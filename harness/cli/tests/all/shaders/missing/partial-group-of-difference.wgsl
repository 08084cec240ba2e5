// expect: divergent barrier
// The count is the distance of two inputs.
struct Parameters { first: u32, end: u32 };
@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x >= parameters.end - parameters.first) { return; }
    tile[local] = data[parameters.first + global.x];
    workgroupBarrier();
    data[parameters.first + global.x] = tile[local ^ 1u];
}
