// --grid 2
struct Mailbox { flag: atomic<u32>, payload: u32 }
@group(0) @binding(0) var<storage, read_write> box: Mailbox;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) wg: vec3<u32>) {
    if (wg.x == 0u) {
        box.payload = 42u; //~ unpublished-read with 14, without a fix
        storageBarrier();
        atomicStore(&box.flag, 1u);
    } else {
        if (atomicLoad(&box.flag) == 1u) {
            storageBarrier();
            out[0] = box.payload;
        }
    }
}
//~ main: racy
