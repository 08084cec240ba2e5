// Each invocation reads what its neighbour wrote.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    tile[i] = data[id.x];
    data[id.x] = tile[(i + 1u) % 64u];
}
