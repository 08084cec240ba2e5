// --inputs auto
// Two rows of workgroups race on a mark, also if the elements of the frontier differ.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer Frontier { uint frontier[]; };
layout(binding = 1) buffer Marks { uint marks[]; };
layout(binding = 2) buffer Count { uint count; };
void main() {
    uint node = frontier[gl_GlobalInvocationID.x];
    if (marks[node] != gl_WorkGroupID.y + 1u) { //~ fix: make this access atomic (it remains unordered)
        marks[node] = gl_WorkGroupID.y + 1u; //~ race with 10; fix: make this access atomic (it remains unordered)
        atomicAdd(count, 1);
    }
}
//~ main: racy; mended: clean in the orders tried
