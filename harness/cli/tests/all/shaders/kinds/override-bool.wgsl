// --grid 2
// A Boolean constant without a value: compilers take numbers.
override wide: bool;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if wide {
        data[0] = id.x;
    } else {
        data[id.x] = id.x;
    }
}
//~ main: needs-inputs
