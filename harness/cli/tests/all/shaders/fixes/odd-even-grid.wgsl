// --grid 2 --buffer 0.0=random:64
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn swap(i: u32) {
    if i + 1u < arrayLength(&data) && data[i] > data[i + 1u] {
        let t = data[i]; data[i] = data[i + 1u]; data[i + 1u] = t;
    }
}
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    swap(id.x * 2u + 1u);
    storageBarrier();
    workgroupBarrier();
    swap(id.x * 2u);
}
