@group(0) @binding(0) var<storage, read_write> slots: array<u32>;
@compute @workgroup_size({{SIZE}})
fn main(@builtin(local_invocation_index) lane: u32) { slots[0] = lane; }
