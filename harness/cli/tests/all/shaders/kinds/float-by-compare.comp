// --grid 2
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint total; float values[]; };
void main() {
    uint old = total, seen; //~ fix: make the racing accesses atomic (they remain unordered)
    do { seen = old; old = atomicCompSwap(total, seen, floatBitsToUint(uintBitsToFloat(seen) + 1.0)); } while (old != seen); //~ race with 6
}
//~ main: racy
