// Integer operators.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let n = i32(data[i]) - 5;
    data[i] = u32(n * 3 - (n << 2u) + (n >> 1u) + (n & 6) - (n | 9) + (n ^ 3));
}
