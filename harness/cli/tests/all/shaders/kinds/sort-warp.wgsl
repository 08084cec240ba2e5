// --grid 2 --buffer 0.0=random --subgroup-size 32
@group(0) @binding(0) var<storage, read_write> keys: array<u32>;
var<workgroup> tile: array<u32, 256>;
@compute @workgroup_size(256)
fn sort(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    tile[i] = keys[g.x * 256u + i];
    workgroupBarrier();
    for (var k = 2u; k <= 256u; k <<= 1u) {
        for (var j = k >> 1u; j > 0u; j >>= 1u) {
            let l = i ^ j;
            if (l > i) { //~ fix: put `workgroupBarrier();` after the statement that this line controls
                let a = tile[i];
                let b = tile[l];
                if (((i & k) == 0u && a > b) || ((i & k) != 0u && a < b)) {
                    tile[i] = b;
                    tile[l] = a; //~ race
                }
            }
            if (j > 16u) { workgroupBarrier(); }
        }
    }
    keys[g.x * 256u + i] = tile[i];
}
//~ sort: racy; mended: clean
