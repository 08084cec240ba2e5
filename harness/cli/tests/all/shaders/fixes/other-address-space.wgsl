// --grid 1
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> s: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    s[lane] = data[lane];
    storageBarrier();
    data[lane] = s[63u - lane];
}
