struct Parameters { count: u32 }
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 4>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < parameters.count) { atomicAdd(&bins[data[id.x] % 4u], 1u); }
}