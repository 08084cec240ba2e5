var<workgroup> part: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    part[i] = data[i];
    for (var step = 1u; step < 64u; step *= 2u) {
        workgroupBarrier();
        let left = select(0u, part[i - min(i, step)], i >= step);
        workgroupBarrier();
        part[i] += left;
    }
    data[i] = part[i];
}