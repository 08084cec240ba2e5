// A bitonic sort of eight numbers.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> keys: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    keys[i] = data[i];
    workgroupBarrier();
    for (var k = 2u; k <= 8u; k *= 2u) {
        for (var j = k / 2u; j > 0u; j /= 2u) {
            let other = i ^ j;
            let mine = keys[i];
            let theirs = keys[other];
            workgroupBarrier();
            let takes_smaller = (i < other) == ((i & k) == 0u);
            keys[i] = select(max(mine, theirs), min(mine, theirs), takes_smaller);
            workgroupBarrier();
        }
    }
    data[i] = keys[i];
}
