// --seed 0
// Racy: the grid covers the array.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) at: vec3u) {
    let count = arrayLength(&data);
    if (at.x >= count) { return; }
    let other = data[count - 1u - at.x];
    data[at.x] = other; //~ race with 7, without a fix
}
//~ main: racy
