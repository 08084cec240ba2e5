// Members after a vec3.
@group(0) @binding(0) var<storage, read_write> items: array<Item>;
struct Item { at: vec3u, scale: u32, flags: vec2u }

@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {
    items[i].scale = items[i].at.z * 2u + items[i].flags.x;
}
