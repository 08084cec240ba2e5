// --grid 2 --buffer 0.1=random:512
@group(0) @binding(0) var<storage, read_write> flag: u32;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if data[id.x] > 4u { flag = 1u; }
}
