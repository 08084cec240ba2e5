// expect: needs-inputs
// No value is given for `limit`, so the store behind the branch is not reached.
override limit: u32;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if limit > 4u {
        data[0] = id.x;
    }
}
