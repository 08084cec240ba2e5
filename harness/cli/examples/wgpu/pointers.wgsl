// Pointers to function variables.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn increment(to: ptr<function, u32>, by: u32) { *to += by; }

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    var n = data[i];
    increment(&n, i);
    increment(&n, 10u);
    data[i] = n;
}
