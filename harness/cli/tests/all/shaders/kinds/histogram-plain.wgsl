// --grid 2
@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read_write> histogram: array<u32, 256>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&pixels)) { return; }
    let bin = pixels[id.x] & 255u;
    histogram[bin] = histogram[bin] + 1u;
}
//~ main: needs-inputs
