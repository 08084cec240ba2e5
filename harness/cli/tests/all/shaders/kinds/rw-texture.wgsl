// --grid 2,2 --image 0.0=8x8
// Racy: neighbours in place.
@group(0) @binding(0) var img: texture_storage_2d<r32uint, read_write>;
@compute @workgroup_size(4, 4)
fn main(@builtin(global_invocation_id) g: vec3u) {
    let v = textureLoad(img, g.xy) + textureLoad(img, (g.xy + vec2u(1u, 0u)) % vec2u(8u)); //~ race with 7, without a fix
    textureStore(img, g.xy, v);
}
//~ main: racy
