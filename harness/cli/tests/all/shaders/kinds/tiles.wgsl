// --grid 2,2 --buffer 0.0=floats:256 --buffer 0.1=floats:256
// Clean: a product in tiles.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> ta: array<array<f32, 4>, 4>;
var<workgroup> tb: array<array<f32, 4>, 4>;
@compute @workgroup_size(4, 4)
fn main(@builtin(local_invocation_id) l: vec3u, @builtin(global_invocation_id) g: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < 2u; k++) {
        ta[l.y][l.x] = a[g.y * 8u + k * 4u + l.x];
        tb[l.y][l.x] = b[(k * 4u + l.y) * 8u + g.x];
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) { sum += ta[l.y][i] * tb[i][l.x]; }
        workgroupBarrier();
    }
    c[g.y * 8u + g.x] = sum;
}
//~ main: clean
