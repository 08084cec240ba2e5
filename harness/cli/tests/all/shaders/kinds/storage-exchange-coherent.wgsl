// --grid 2
// Clean: naga makes the buffer coherent where it is told to.
@group(0) @binding(0) @coherent var<storage, read_write> data: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
    data[w.x * 8u + l] = l;
    storageBarrier();
    let v = data[w.x * 8u + 7u - l];
    storageBarrier();
    data[w.x * 8u + l] = v;
}
//~ main: clean
