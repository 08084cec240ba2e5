//! Measures the work of the host: generating kernels, resetting memory before a dispatch, and counting
//! outcomes after it.
#![expect(clippy::unwrap_used, reason = "a failure is the report")]

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, reason = "the contract is played by the tests")]
mod common;

use std::ops::ControlFlow;

use common::{FakeDevice, SubmissionEnd, kernel, store_buffering};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use runner::{RunBudget, RunSettings, Stress, run};
use shaders::classify::{self, CountedMemory, RowColumn, RowTable, WordSource};

const INSTANCES: u64 = 4_000_000;

/// Uses a device with almost no latency, so that the measured time is that of the host.
fn host(criterion: &mut Criterion) {
    let device = FakeDevice::new(true, |number, memories| {
        let instances = (memories.parameters.rounds * memories.parameters.groups * 4) as usize;
        let (registers, done) = memories.results.split_at_mut(2 * instances);
        let value = number as u32 & 1;
        registers.fill(value);
        done[..instances].fill(memories.parameters.done);
        SubmissionEnd::Ends
    });
    let (kernel, test) = (kernel(), store_buffering());
    let stress = Stress {
        rounds: (2_000, 2_000),
        spacing: (1, 1),
        padding: (0, 0),
        calibrate: false,
        ..Stress::preset("swiftshader").unwrap()
    };
    let settings = RunSettings::new(stress, RunBudget::instances(INSTANCES), 1);
    let mut group = criterion.benchmark_group("host");
    group.throughput(Throughput::Elements(INSTANCES)).sample_size(10);
    group.bench_function("reset and count", |bencher| {
        bencher.iter(|| run(&device, &kernel, &test, &settings, &mut |_| ControlFlow::Continue(())).unwrap());
    });
    group.finish();
}

/// Measures the cost of a test before its first dispatch.
fn kernels(criterion: &mut Criterion) {
    let config = shaders::KernelConfig { subgroup_size: 8, lanes: 8, ..shaders::KernelConfig::MINIMAL };
    let mut group = criterion.benchmark_group("kernel generation");
    for (name, text) in [
        ("SB+rlx-rlx", include_str!("../../../litmus/corpus/sb/SB+rlx-rlx.litmus")),
        ("IRIW+rlx", include_str!("../../../litmus/corpus/iriw/IRIW+rlx.litmus")),
        ("MP+cbar", include_str!("../../../litmus/corpus/barrier/MP+cbar.litmus")),
    ] {
        let test = litmus::parse(text, name).unwrap();
        group.bench_function(name, |bencher| bencher.iter(|| shaders::compile(&test, &config).unwrap()));
    }
    // The additional kernels of a device that counts outcomes.
    let memory = CountedMemory {
        lanes: 64,
        slots: 4,
        storage_words: 1,
        initial_values: vec![0, 0],
        done_slots: Vec::new(),
        by_round: false,
        workgroup_size: 256,
        workgroups: 256,
        first_receipt: 16,
        device_scope: true,
    };
    let columns =
        (0..4).map(|slot| RowColumn { source: WordSource::Slot(slot), words: vec![0, 1] }).collect();
    let table = RowTable::new(columns).unwrap();
    group.bench_function("reset and count on the device", |bencher| {
        bencher.iter(|| (classify::reset_kernel(&memory), classify::counting_kernel(&memory, &table)));
    });
    group.finish();
}

criterion_group!(benches, host, kernels);
criterion_main!(benches);
