// --grid 4
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> block_sums: array<u32>;
const N: u32 = 128u;
var<workgroup> temp: array<u32, 256>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) wid: vec3<u32>) {
    let base = wid.x * 256u;
    temp[2u * lid.x] = data[base + 2u * lid.x];
    temp[2u * lid.x + 1u] = data[base + 2u * lid.x + 1u];
    var offset = 1u;
    for (var d = N; d > 0u; d = d >> 1u) {
        workgroupBarrier();
        if (lid.x < d) {
            let ai = offset * (2u * lid.x + 1u) - 1u;
            let bi = offset * (2u * lid.x + 2u) - 1u;
            temp[bi] = temp[bi] + temp[ai];
        }
        offset = offset * 2u;
    }
    if (lid.x == 0u) {
        block_sums[wid.x] = temp[255];
        temp[255] = 0u;
    }
    for (var d = 1u; d < 256u; d = d * 2u) {
        offset = offset >> 1u;
        workgroupBarrier();
        if (lid.x < d) {
            let ai = offset * (2u * lid.x + 1u) - 1u;
            let bi = offset * (2u * lid.x + 2u) - 1u;
            let t = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] = temp[bi] + t;
        }
    }
    workgroupBarrier();
    data[base + 2u * lid.x] = temp[2u * lid.x];
    data[base + 2u * lid.x + 1u] = temp[2u * lid.x + 1u];
}
//~ main: clean
