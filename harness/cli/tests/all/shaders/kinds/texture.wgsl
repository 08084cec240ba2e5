// --grid 2,2 --image 0.0=8x8 --image 0.1=8x8
// Clean.
@group(0) @binding(0) var src: texture_2d<f32>;
@group(0) @binding(1) var dst: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(4, 4)
fn main(@builtin(global_invocation_id) g: vec3u) {
    let size = textureDimensions(src);
    if (any(g.xy >= size)) { return; }
    var sum = vec4f();
    for (var i = -1; i <= 1; i++) { sum += textureLoad(src, clamp(vec2i(g.xy) + vec2i(i, 0), vec2i(0), vec2i(size) - 1), 0); }
    textureStore(dst, g.xy, sum / 3.0);
}
//~ main: clean
