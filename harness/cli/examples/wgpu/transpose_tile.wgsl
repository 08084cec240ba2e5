// A transposed tile in workgroup memory.
@group(0) @binding(0) var<storage, read> given: array<u32>;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 16>;

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = given[i];
    workgroupBarrier();
    data[i] = tile[(i % 4u) * 4u + i / 4u];
}
