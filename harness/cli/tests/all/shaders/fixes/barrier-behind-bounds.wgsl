// --grid 2
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < 100u) {
        tile[lane] = data[id.x];
        workgroupBarrier();
        data[id.x] = tile[63u - lane];
    }
}
