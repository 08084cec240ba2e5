// Keeps the odd numbers of 8, in order, and counts them.
@group(0) @binding(0) var<storage, read> data: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> kept: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> count: u32;
var<workgroup> flags: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    let flag = data[lane] % 2u;
    flags[lane] = flag;
    workgroupBarrier();
    var at = 0u;
    for (var other = 0u; other < lane; other++) { at += flags[other]; }
    if (flag == 1u) { kept[at] = data[lane]; }
    if (lane == 7u) { count = at + flag; }
}
