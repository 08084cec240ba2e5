// expect: needs-inputs
// The invocations race for the assumed number, and not for a large one.
override count: u32;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x % count] = id.x;
}
