// A workgroup value that all invocations read.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read> given: u32;
var<workgroup> limit: u32;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    if (i == 0u) { limit = given; }
    let n = workgroupUniformLoad(&limit);
    data[i] = min(data[i], n);
}
