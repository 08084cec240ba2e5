#version 450
// expect: racy
// The local size is a specialization constant, whose default of one would hide the race.
layout(local_size_x_id = 0) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint last;
void main() {
    last = gl_LocalInvocationIndex;
    data[gl_GlobalInvocationID.x] = last;
}
