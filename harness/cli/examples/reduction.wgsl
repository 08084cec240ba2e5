// The sum of all numbers: each workgroup adds its 8 in a tree, then to the total.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: atomic<u32>;
var<workgroup> sums: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(global_invocation_id) id: vec3u) {
    sums[lane] = data[id.x];
    for (var half = 4u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { sums[lane] += sums[lane + half]; }
    }
    if (lane == 0u) { atomicAdd(&total, sums[0]); }
}
