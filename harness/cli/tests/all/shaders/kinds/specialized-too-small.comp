// --grid 2 --spec 0=32 --spec 1=4 --spec 3=false
#version 450
layout(local_size_x_id = 0, local_size_y_id = 1) in;
layout(constant_id = 2) const uint WIDTH = 64;
layout(constant_id = 3) const bool CHECKED = true;
layout(binding = 0) buffer Data { uint values[]; };
shared uint tile[WIDTH];
void main() {
    uint lane = gl_LocalInvocationIndex;
    if (!CHECKED || lane < WIDTH) tile[lane] = lane; //~ out-of-bounds, without a fix
    barrier();
    values[gl_WorkGroupID.x * WIDTH + lane] = tile[WIDTH - 1 - lane]; //~ race, without a fix
}
//~ main: racy
