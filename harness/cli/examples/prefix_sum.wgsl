// The inclusive prefix sums of each workgroup's 8 numbers.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> sums: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(global_invocation_id) id: vec3u) {
    sums[lane] = data[id.x];
    workgroupBarrier();
    for (var step = 1u; step < 8u; step *= 2u) {
        var left = 0u;
        if (lane >= step) { left = sums[lane - step]; }
        workgroupBarrier();
        sums[lane] += left;
        workgroupBarrier();
    }
    data[id.x] = sums[lane];
}
