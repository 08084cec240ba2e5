// --grid 4 --buffer 0.0=floats:8192
#version 450
layout(local_size_x = 64) in;
struct Particle { vec3 position; float life; vec3 speed; uint kind; };
layout(std430, binding = 0) readonly buffer Old { Particle old[]; };
layout(std430, binding = 1) buffer New { Particle fresh[]; };
layout(std430, binding = 2) buffer Count { uint x, y, z; uint alive; };
void main() {
    Particle p = old[gl_GlobalInvocationID.x % 128];
    p.life -= 0.25;
    p.position += p.speed * 0.1;
    if (p.life <= 0.0) return;
    uint slot = alive++; //~ race; fix: use `atomicAdd` instead of this load and store
    if (slot >= 1024) return;
    fresh[slot] = p;
    if (slot % 64 == 0) atomicAdd(x, 1);
}
//~ main: racy; mended: clean in the orders tried
