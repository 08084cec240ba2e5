@group(0) @binding(0) var<storage, read_write> b: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> o: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> f: atomic<u32>;
@compute @workgroup_size(1)
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) g: vec3u) {
  if (g.x == 0u) { b[0] = 42u; storageBarrier(); atomicStore(&f, 1u); }
  else if (atomicLoad(&f) == 1u) { o[0] = b[0]; }
}
