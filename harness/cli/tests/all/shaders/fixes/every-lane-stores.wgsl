// --grid 1
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: u32;
var<workgroup> sum: u32;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    sum = 5u;
    workgroupBarrier();
    data[lane] = sum;
}
