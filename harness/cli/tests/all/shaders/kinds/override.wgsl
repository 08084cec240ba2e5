// --grid 2
// Clean: overrides, loops with continuing, switch, arrayLength.
override SCALE: f32 = 2.0;
struct P { pos: vec3f, kind: u32 }
@group(0) @binding(0) var<storage, read_write> ps: array<P>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) g: vec3u) {
    if (g.x >= arrayLength(&ps)) { return; }
    let p = &ps[g.x];
    var i = 0u;
    loop {
        if (i >= 3u) { break; }
        (*p).pos[i] = (*p).pos[i] * SCALE;
        continuing { i++; }
    }
    switch ((*p).kind) { case 0u, 1u: { (*p).kind = 2u; } default: { (*p).kind += 1u; } }
}
//~ main: clean
