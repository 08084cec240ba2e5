enable subgroups;
@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) { sums[0] = subgroupAdd(lane); }
