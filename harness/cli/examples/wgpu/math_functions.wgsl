// Functions on floats with exact results.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let x = bitcast<f32>(data[i]);
    data[i] = bitcast<u32>(floor(x) + ceil(x) * 2.0 + trunc(x) * 4.0 + abs(x) + min(x, 1.0) + max(x, 1.0) + sign(x) + clamp(x, -1.0, 0.5));
}
