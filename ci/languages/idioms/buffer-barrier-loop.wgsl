@group(0) @binding(0) var<storage, read_write> b: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> o: array<u32, 8>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) g: vec3u) {
  for (var i = 0u; i < 3u; i++) {
    b[t] = t + i;
    storageBarrier();
    o[t] = b[7u - t];
    storageBarrier();
  }
}
