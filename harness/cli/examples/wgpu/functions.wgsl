// Functions with early returns.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn gcd(a: u32, b: u32) -> u32 {
    var x = a;
    var y = b;
    for (var k = 0u; k < 40u; k++) {
        if (y == 0u) { return x; }
        let rest = x % y;
        x = y;
        y = rest;
    }
    return 0u;
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    data[i] = gcd(data[i], 48u);
}
