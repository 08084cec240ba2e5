// expect: racy
// The workgroup lacks a barrier, whatever its size.
override size: u32;
var<workgroup> shared_ids: array<u32, 128>;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(size)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    shared_ids[i] = i;
    data[id.x] = shared_ids[(i + 1u) % size];
}
