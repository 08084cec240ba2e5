// The number of Collatz steps of each number (hello-compute of wgpu).
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var n = data[id.x];
    var count = 0u;
    while (n != 1u) {
        if (n % 2u == 0u) { n = n / 2u; } else { n = 3u * n + 1u; }
        count++;
    }
    data[id.x] = count;
}
