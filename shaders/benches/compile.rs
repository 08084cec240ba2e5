//! Measures the time from a parsed test to the words of its kernel.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, criterion_group, criterion_main};

fn compile(criterion: &mut Criterion) {
    let config = shaders::KernelConfig { subgroup_size: 8, lanes: 8, ..shaders::KernelConfig::MINIMAL };
    let tests = [
        ("SB", include_str!("../tests/kernels/SB.litmus")),
        ("MP.guard", include_str!("../tests/kernels/MP.guard.litmus")),
        ("MP.crossed", include_str!("../tests/kernels/MP.crossed.litmus")),
        ("Subgroup.barrier", include_str!("../tests/kernels/Subgroup.barrier.litmus")),
    ];
    for (name, text) in tests {
        let test = litmus::parse(text, name).unwrap();
        criterion.bench_function(&format!("compile {name}"), |bencher| {
            bencher.iter(|| shaders::compile(&test, &config).unwrap());
        });
        let kernel = shaders::compile(&test, &config).unwrap();
        criterion.bench_function(&format!("verify {name}"), |bencher| {
            bencher.iter(|| kernel_oracle::lift::verify(&test, &kernel).unwrap());
        });
    }
}

criterion_group!(benches, compile);
criterion_main!(benches);
