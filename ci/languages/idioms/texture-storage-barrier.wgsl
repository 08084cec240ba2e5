@group(0) @binding(0) var<storage, read_write> b: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> o: array<u32, 8>;
@group(0) @binding(2) var im: texture_storage_1d<r32uint, read_write>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) g: vec3u) {
  textureStore(im, t, vec4u(t));
  storageBarrier();
  o[t] = textureLoad(im, 7u - t).x;
}
