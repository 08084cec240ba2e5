// Constants and overrides.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
const FACTOR = 2u * 3u;
const TABLE = array<u32, 4>(1u, 1u, 2u, 3u);

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    data[i] = data[i] * FACTOR + TABLE[i];
}
