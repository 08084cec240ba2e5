// --inputs auto
struct Lag { steps: u32 }
@group(0) @binding(0) var<storage, read_write> signal: array<f32>;
@group(0) @binding(1) var<uniform> lag: Lag;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) { signal[id.x] = signal[id.x + lag.steps] * 0.5; }
//~ main: clean
