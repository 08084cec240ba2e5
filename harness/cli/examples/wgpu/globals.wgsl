// Private and workgroup variables.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<private> own: u32;
var<workgroup> shared_numbers: array<u32, 4>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    own = i * 2u;
    shared_numbers[3u - i] = data[i] + own;
    workgroupBarrier();
    data[i] = shared_numbers[i];
}
