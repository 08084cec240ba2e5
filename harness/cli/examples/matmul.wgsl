// The product of two matrices of 4 by 4, in tiles of 2 by 2.
@group(0) @binding(0) var<storage, read> a: array<u32, 16>;
@group(0) @binding(1) var<storage, read> b: array<u32, 16>;
@group(0) @binding(2) var<storage, read_write> c: array<u32, 16>;
var<workgroup> tile_a: array<u32, 4>;
var<workgroup> tile_b: array<u32, 4>;

@compute @workgroup_size(2, 2)
fn main(@builtin(local_invocation_id) l: vec3u, @builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    for (var tile = 0u; tile < 2u; tile++) {
        tile_a[l.y * 2u + l.x] = a[id.y * 4u + tile * 2u + l.x];
        tile_b[l.y * 2u + l.x] = b[(tile * 2u + l.y) * 4u + id.x];
        workgroupBarrier();
        for (var k = 0u; k < 2u; k++) { sum += tile_a[l.y * 2u + k] * tile_b[k * 2u + l.x]; }
        workgroupBarrier();
    }
    c[id.y * 4u + id.x] = sum;
}
