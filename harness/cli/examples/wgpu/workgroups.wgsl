// Two workgroup variables and a barrier (hello-workgroups).
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
    if (group.x == 0u) { a[i] += 1u; } else { b[i] += 2u; }
}
