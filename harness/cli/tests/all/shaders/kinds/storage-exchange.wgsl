// --grid 2
// WGSL has it right; of what naga makes of it the buffer is private to each invocation, so that the barrier publishes nothing.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
    data[w.x * 8u + l] = l; //~ lost-order with 8; fix: compile with tint, or declare the elements of `data` `atomic`; naga makes plain storage private
    storageBarrier();
    let v = data[w.x * 8u + 7u - l]; //~ lost-order with 10
    storageBarrier();
    data[w.x * 8u + l] = v;
}
//~ main: clean
