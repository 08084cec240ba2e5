// A loop that breaks at its end.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    var n = data[i];
    loop {
        n = n * 2u;
        continuing {
            break if (n > 50u);
        }
    }
    data[i] = n;
}
