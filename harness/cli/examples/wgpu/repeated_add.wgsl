// A loop with a limit (repeated-compute).
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var k = 0u; k < 5u; k++) { data[id.x] = data[id.x] + id.x; }
}
