// --grid 1 --buffer 0.0=random:512
@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<u32>;
var<workgroup> local: array<u32, 16>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane < 16u { local[lane] = 0u; }
    workgroupBarrier();
    local[values[id.x] & 15u] += 1u;
    workgroupBarrier();
    if lane < 16u { bins[lane] = local[lane]; }
}
