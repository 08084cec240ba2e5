// Counts the numbers by their last two bits, first in the workgroup.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>, 4>;
var<workgroup> local_counts: array<atomic<u32>, 4>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(global_invocation_id) id: vec3u) {
    atomicAdd(&local_counts[data[id.x] % 4u], 1u);
    workgroupBarrier();
    if (lane < 4u) { atomicAdd(&counts[lane], atomicLoad(&local_counts[lane])); }
}
