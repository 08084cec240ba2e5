// --inputs auto
// Clean: positions have 32 bits, so no grid lets them wrap.
@group(0) @binding(0) var<uniform> count: i32;
@group(0) @binding(1) var<storage, read> codes: array<u32>;
@group(0) @binding(2) var<storage, read_write> parents: array<i32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3u) {
    let i = i32(at.x);
    if (i >= count - 1) { return; }
    parents[i] = select(i + 1, i - 1, codes[i] < codes[max(i - 1, 0)]);
}
//~ main: clean
