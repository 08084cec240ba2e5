// A switch with several selectors.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    switch (data[i]) {
        case 0u: { data[i] = 10u; }
        case 1u, 2u: { data[i] = 11u; }
        default: { data[i] = 99u; }
    }
}
