// Shadowed variables.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let n = data[i];
    {
        let n = n * 10u;
        data[i] = n + 1u;
    }
    if (n > 2u) { let n = 7u; data[i] += n; }
}
