// Break and continue.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    var sum = 0u;
    for (var k = 0u; k < 20u; k++) {
        if (k % 3u == 0u) { continue; }
        if (k > data[i]) { break; }
        sum += k;
    }
    data[i] = sum;
}
