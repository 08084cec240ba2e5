@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> row: array<u32, 2>;

@compute @workgroup_size(2)
fn swap(@builtin(local_invocation_index) id: u32) {
    row[id] = id;
    data[id] = row[1 - id];
}
