// --grid 2 --image 0.3=16x16
struct Params { count: u32, scale: f32, rows: array<vec4<f32>, 4> }
struct Slot { key: atomic<u32>, value: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec3<f32>>;
@group(0) @binding(2) var<storage, read_write> slots: array<Slot>;
@group(0) @binding(3) var picture: texture_storage_2d<rgba8unorm, write>;
var<workgroup> sums: array<f32, 16>;
var<workgroup> count: atomic<u32>;
fn weigh(p: ptr<function, vec3<f32>>, by: f32) -> f32 { (*p).x = by; return dot(*p, vec3<f32>(1.0, 2.0, 3.0)); }
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var mine = input[id.x];
    sums[lane] = weigh(&mine, params.scale) + params.rows[lane % 4u].y;
    workgroupBarrier();
    if (sums[(lane + 1u) % 16u] >= 0.0) { atomicAdd(&count, 1u); }
    workgroupBarrier();
    var at = id.x;
    loop {
        let found = atomicCompareExchangeWeak(&slots[at % 64u].key, 0u, id.x + 1u);
        if (found.exchanged) { break; }
        at += 1u;
        if (at > 1000u) { return; }
    }
    slots[at % 64u].value = atomicLoad(&count);
    textureStore(picture, vec2<i32>(id.xy), vec4<f32>(mine, 1.0));
}
//~ main: clean in the orders tried
