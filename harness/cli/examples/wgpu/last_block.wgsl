// The last workgroup adds the partial sums.
@group(0) @binding(0) var<storage, read_write> parts: array<atomic<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> done: atomic<u32>;
@group(0) @binding(2) var<storage, read_write> total: u32;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u) {
    atomicStore(&parts[group.x], group.x + 5u);
    storageBarrier();
    if (atomicAdd(&done, 1u) == 3u) {
        var sum = 0u;
        for (var k = 0u; k < 4u; k++) { sum += atomicLoad(&parts[k]); }
        total = sum;
    }
}
