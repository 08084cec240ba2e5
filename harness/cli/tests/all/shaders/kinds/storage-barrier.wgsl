// --grid 2
// Clean: storage is exchanged in the workgroup by storageBarrier.
@group(0) @binding(0) var<storage, read_write> d: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(global_invocation_id) g: vec3u, @builtin(workgroup_id) w: vec3u) {
    atomicStore(&d[g.x], t);
    storageBarrier();
    o[g.x] = atomicLoad(&d[w.x * 8u + 7u - t]);
}
//~ main: clean
