// Sorts 8 numbers below 16: four passes, each stable by one bit.
@group(0) @binding(0) var<storage, read_write> data: array<u32, 8>;
var<workgroup> keys: array<u32, 8>;
var<workgroup> zeros: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    keys[lane] = data[lane];
    for (var bit = 0u; bit < 4u; bit++) {
        let key = keys[lane];
        let one = (key >> bit) & 1u;
        zeros[lane] = 1u - one;
        workgroupBarrier();
        var before = 0u;
        var all = 0u;
        for (var other = 0u; other < 8u; other++) {
            if (other < lane) { before += zeros[other]; }
            all += zeros[other];
        }
        keys[select(before, all + lane - before, one == 1u)] = key;
        workgroupBarrier();
    }
    data[lane] = keys[lane];
}
