@group(0) @binding(0) var<storage, read_write> b: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> o: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> f: atomic<u32>;
@compute @workgroup_size(1)
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) g: vec3u) {
  atomicAdd(&f, g.x);
}
