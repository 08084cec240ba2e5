// --image 0.0=16x1
// Textures are non-private; `textureBarrier` orders them in the workgroup.
@group(0) @binding(0) var texture: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_index) i: u32) {
    textureStore(texture, vec2(i, 0u), vec4(i)); //~ lost-order with 10; fix: compile with tint, or declare the elements of `texture` `atomic`; naga makes plain storage private
    textureBarrier();
    result[i] = textureLoad(texture, vec2(15u - i, 0u)).x;
}
//~ main: clean
