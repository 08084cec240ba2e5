// expect: needs-inputs
// One round does not race with the next one.
override STEPS: u32;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3<u32>) {
    tile[i] = data[g.x];
    workgroupBarrier();
    for (var s = 0u; s < STEPS; s++) {
        let v = tile[(i + 1u) % 64u];
        workgroupBarrier();
        tile[i] = v;
    }
    data[g.x] = tile[i];
}
