//! Measures the time from a parsed test to its prediction, with a compiled model.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use model::{Model, PredictOptions, predict};

/// Tests of the corpus by size; their names have the number of threads.
const TESTS: &[&str] =
    &["mp/MP+rlx-rlx", "mp/MP+rel-acq", "sb/SB+rlx-rlx", "isa2/ISA2+rel-acqrel-acq", "iriw/IRIW+rlx"];

fn bench_predictions(criterion: &mut Criterion) {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let mut group = criterion.benchmark_group("predict");
    for id in TESTS {
        let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == *id).unwrap();
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        group.bench_function(*id, |b| b.iter(|| predict(&test, &model, &PredictOptions::default()).unwrap()));
    }
    group.finish();
}

criterion_group!(benches, bench_predictions);
criterion_main!(benches);
