// Each workgroup adds to a counter (hello-synchronization).
@group(0) @binding(0) var<storage, read_write> total: atomic<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    atomicAdd(&total, i + 1u);
}
