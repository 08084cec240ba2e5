// --grid 2
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4) fn clear(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = 0u; }
@compute @workgroup_size(4) fn spoil(@builtin(local_invocation_id) id: vec3<u32>) { data[id.x] = id.x; } //~ race, without a fix
//~ clear: clean
//~ spoil: racy
