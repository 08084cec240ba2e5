// Packed bytes.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let v = unpack4xU8(data[i]);
    data[i] = pack4xU8(v.yxwz + vec4u(1u));
}
