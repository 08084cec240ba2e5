// Functions on bits.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let n = data[i];
    data[i] = countOneBits(n) + reverseBits(n) + extractBits(n, 2u, 3u) + firstLeadingBit(n | 1u) + firstTrailingBit(n | 8u);
}
