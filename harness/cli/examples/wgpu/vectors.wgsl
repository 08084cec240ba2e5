// Swizzles and vector arithmetic.
@group(0) @binding(0) var<storage, read_write> data: array<vec4u>;

@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {
    let v = data[i];
    data[i] = v.wzyx * 2u + vec4u(v.xy, 1u, 2u);
}
