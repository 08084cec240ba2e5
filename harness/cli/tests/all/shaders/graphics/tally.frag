#version 450
// $ race --grid 4
// exit code 2
// > an index is computed from floats or opaque values
// $ race --grid 4 --case apart.toml
// exit code 0
// > clean
// $ check --grid 4 --case apart.toml
// exit code 0
// > race-free
// $ check --grid 4 --case shared.toml
// exit code 1
// > data race on `Tally.bins[0]`: invocation fragment 0 of pixel (0,0)
// > of pixel (2,0)
layout(set = 0, binding = 0) buffer Tally { uint bins[4]; };
layout(location = 0) flat in uint material;
void main() {
    bins[material] = material;
}
