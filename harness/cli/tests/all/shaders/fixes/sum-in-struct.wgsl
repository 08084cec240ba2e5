// --grid 2
struct Stats { low: u32, high: u32, sum: u32 }
@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> stats: Stats;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = values[id.x];
    stats.sum += v;
}
