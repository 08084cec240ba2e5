//! Benchmark of parsing and exploring the committed texts: tests per second on one core, by family.
#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]

#[path = "../tests/explorer/sample.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod sample;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isa::{FactTable, Profile, explore};

fn benchmark_explore(criterion: &mut Criterion) {
    let facts = FactTable::shipped().unwrap();
    let mut group = criterion.benchmark_group("explore");
    for family in sample::FAMILIES {
        let samples = sample::samples(family);
        let questions: Vec<_> =
            samples.iter().map(|sample| sample::question(family, sample, &sample::parsed(sample))).collect();
        group.throughput(Throughput::Elements(samples.len() as u64));
        group.bench_function(family, |bencher| {
            bencher.iter(|| {
                for (sample, question) in samples.iter().zip(&questions) {
                    let mut question = question.clone();
                    for (kernel, program) in question.kernels.iter_mut().zip(sample::parsed(sample)) {
                        kernel.program = program;
                    }
                    std::hint::black_box(explore(&question, Profile::Documented, &facts));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark_explore);
criterion_main!(benches);
