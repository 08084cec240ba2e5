// --grid 2
struct P { pos: vec2<f32>, vel: vec2<f32> }
@group(0) @binding(0) var<storage, read> a: array<P>;
@group(0) @binding(1) var<storage, read_write> b: array<P>;
override size: u32 = 8;
var<workgroup> tile: array<vec2<f32>, 16>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  var f = vec2<f32>(0.0);
  let n = arrayLength(&a);
  for (var base = 0u; base < 64u; base += 16u) {
    tile[l] = a[base + l].pos;
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) { if (base + i == id.x) { continue; } f += normalize(tile[i] - a[id.x].pos + vec2(0.01)); }
    workgroupBarrier();
  }
  switch l { case 0u, 1u: { b[id.x].vel = f; } default: { b[id.x] = P(a[id.x].pos, f); } }
}
//~ main: clean
