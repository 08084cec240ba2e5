// expect: needs-inputs
// The store that is not reached is on the line of its condition.
override limit: u32;
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    if (limit > 4000u) { values[0] = i; }
}
