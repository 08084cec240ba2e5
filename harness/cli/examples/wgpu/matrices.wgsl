// Matrix times vector.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let m = mat2x2f(1.0, 2.0, 3.0, f32(i));
    let v = m * vec2f(bitcast<f32>(data[i]), 2.0);
    data[i] = bitcast<u32>(v.x + v.y);
}
