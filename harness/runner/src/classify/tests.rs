//! Compares the counts of the device with those of the host on prepared memory: expected rows and unexpected
//! words.

use std::time::Duration;

use litmus::Test;
use plan::{Buffer, BufferId, BufferMemory, Device, KernelId, Plan, PlanStep, Progress, Queue, QueueId};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shaders::classify::BufferRole;
use shaders::{KernelConfig, Parameters, Pipelines, Program};
use sim::{Fault, SimDevice};

use super::*;
use crate::count::{DispatchMemory, RowCounts, Unwritten};
use crate::stress::Stress;

const QUEUE: QueueId = QueueId(0);
const SALT: u32 = 0x7b12_3456;
const BUFFERS: [BufferRole; 4] =
    [BufferRole::Results, BufferRole::Counters, BufferRole::Locations, BufferRole::Texels];
const TESTS: [(&str, &str); 6] = [
    ("SB+rlx-rlx", include_str!("../../../../litmus/corpus/sb/SB+rlx-rlx.litmus")),
    ("IRIW+rlx", include_str!("../../../../litmus/corpus/iriw/IRIW+rlx.litmus")),
    ("2+2W+rlx", TWO_WRITES),
    (
        "wide",
        "VULKAN wide\n{\nu64 x = 0;\ny = 3;\n}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\nst.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, x ;\nst.atom.dv.sc0 y, 1 | st.atom.dv.sc0 y, 2 ;\nexists (P1:r0 == 1 /\\ y == 1)",
    ),
    (
        "float",
        "VULKAN float\n{\nf32 x = 0;\ny = 0;\n}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\nst.atom.dv.sc0 x, 1 | st.atom.dv.sc0 x, 2 ;\nst.atom.dv.sc0 y, 1 | ld.atom.dv.sc0 r0, y ;\nexists (P1:r0 == 1 /\\ x == 2)",
    ),
    (
        "vector",
        "VULKAN vector\n{\nu32x4 v = {0, 7, 1, 2};\ny = 0;\n}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\nst.av.dv.sc0 v, {1, 2, 1, 2} | st.atom.dv.sc0.u32 v+12, 1 ;\nst.atom.dv.sc0 y, 1 | ld.atom.dv.sc0 r0, y ;\nexists (P1:r0 == 1 /\\ v[1] == 2 /\\ v[3] == 1)",
    ),
];
const TWO_WRITES: &str = "VULKAN W\n{\nx = 0;\ny = 0;\n}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\nst.atom.dv.sc0 x, 1 | st.atom.dv.sc0 y, 1 ;\nst.atom.dv.sc0 y, 2 | st.atom.dv.sc0 x, 2 ;\nexists (x == 1 /\\ y == 1)";

struct RowCase {
    test: Test,
    program: Program,
    bounds: KernelLimits,
    capabilities: Capabilities,
}

fn row_case(name: &str, text: &str) -> RowCase {
    let capabilities = SimDevice::new(Fault::None).capabilities().clone();
    let stress = Stress { rounds: (4, 4), groups: (6, 6), ..Stress::preset("sim").unwrap() };
    let config = KernelConfig { lanes: 8, ..stress.kernel_config(&capabilities) };
    let test = litmus::parse(text, name).unwrap();
    let program = shaders::compile_program(&test, &config, Pipelines::Merged).unwrap();
    let bounds = KernelLimits::new(&program, &capabilities, &stress).unwrap();
    RowCase { test, program, bounds, capabilities }
}

impl RowCase {
    fn counter(&self, batching: bool) -> Counter {
        Counter::new(&self.test, &self.program, batching).unwrap()
    }

    fn classifier(&self, counter: &Counter) -> Classifier {
        let (capabilities, numbers) = (&self.capabilities, [0, 1, 2]);
        Classifier::new(
            counter,
            &self.program,
            capabilities,
            &self.bounds,
            &numbers,
            4,
            CountingPlace::Device,
        )
        .unwrap()
    }
}

fn parameters() -> Parameters {
    Parameters {
        groups: 6,
        rounds: 4,
        stride: 11,
        spacing: 3,
        poison: POISON,
        done: DONE,
        ..Parameters::SINGLE
    }
}

/// Runs a helper kernel on memory in the order of [`BUFFERS`].
fn run_helper(helper: &ClassifierKernel, workgroups: u32, memory: &mut [Vec<u32>; 4]) {
    let device = SimDevice::new(Fault::None);
    let number = |shown: &BufferRole| BUFFERS.iter().position(|known| known == shown).unwrap() as u32;
    let plan = Plan {
        kernels: vec![plan::Kernel {
            words: helper.words.clone(),
            bindings: helper.bindings.len() as u32,
            push_constant_bytes: classify::PUSH_CONSTANT_BYTES,
            ..plan::Kernel::default()
        }],
        buffers: memory
            .iter()
            .map(|words| Buffer { words: words.len() as u64, memory: BufferMemory::Shared, name: "memory" })
            .collect(),
        queues: vec![Queue { family: 0 }],
        steps: vec![
            PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups,
                bindings: helper.bindings.iter().map(|shown| BufferId(number(shown))).collect(),
                push_constants: [parameters().to_bytes(), SALT.to_le_bytes().to_vec()].concat(),
            },
            PlanStep::Barrier { queue: QUEUE },
        ],
        ..Plan::default()
    };
    let mut prepared = device.prepare(&plan).unwrap();
    for (number, words) in (0..).zip(memory.iter()) {
        prepared.write(BufferId(number)).unwrap().copy_from_slice(words);
    }
    prepared.submit().unwrap();
    while prepared.poll(Duration::from_secs(60)).unwrap() == Progress::Running {}
    for (number, words) in (0..).zip(memory.iter_mut()) {
        *words = prepared.fetch(BufferId(number), words.len() as u64).unwrap().to_vec();
    }
}

/// Returns the memory of a dispatch; most instances have expected results.
fn dispatch_memory(case: &RowCase, counter: &Counter, odd: u32, seed: u64) -> [Vec<u32>; 4] {
    let p = parameters();
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let instances = (p.groups * p.rounds * case.program.lanes) as usize;
    let mut word = |done: bool| {
        let chance = generator.random_range(0..1000);
        // A dispatch with unwritten words is discarded.
        let unexpected = [DONE, !DONE, 3, 0xfeed_beef, 1 << 31];
        if chance < odd {
            unexpected[generator.random_range(0..unexpected.len())]
        } else if done {
            DONE
        } else {
            generator.random_range(0..3)
        }
    };
    let done = counter.done_slots();
    let slots = case.program.results.len();
    let results = (0..slots).flat_map(|slot| vec![done.contains(&(slot as u32)); instances]);
    let mut results: Vec<u32> = results.map(&mut word).collect();
    if odd > 100 {
        // One instance was not executed, and another was written in part.
        (0..slots).for_each(|slot| results[slot * instances + 17] = POISON);
        results[18] = POISON;
    }
    results.push(SALT);
    let units = (instances + 1) * p.stride as usize * case.program.storage_words.max(1) as usize;
    let float = case.test.name == "float";
    let locations = (0..units).map(|_| word(false));
    let locations = locations.map(|word| if float { (word as i32 as f32).to_bits() } else { word }).collect();
    [results, vec![0; 1 << 14], locations, vec![0; 16]]
}

#[test]
fn device_and_host_counts_agree_on_any_memory() {
    let (mut elsewhere, mut unresolved, mut unexpected, mut discarded) = (0, 0, 0, 0);
    for (name, text) in TESTS {
        let case = row_case(name, text);
        for (seed, batching, odd) in
            [(1, false, 0), (2, true, 0), (3, false, 9), (4, true, 9), (5, false, 300)]
        {
            let counter = case.counter(batching);
            let classifier = case.classifier(&counter);
            let p = parameters();
            let instances = (p.groups * p.rounds * case.program.lanes) as usize;
            let mut memory = dispatch_memory(&case, &counter, odd, seed);
            let before = memory.clone();
            run_helper(&classifier.count, classifier.workgroups, &mut memory);
            assert_eq!(
                (&memory[0], &memory[2]),
                (&before[0], &before[2]),
                "{name}: counting changes no memory"
            );
            let counted = counter.decode_counters(
                &classifier.table,
                &memory[1][..usize::try_from(classifier.counters).unwrap()],
            );
            assert_eq!(counted.instances(), instances as u64, "{name}: every instance is counted once");

            let mut host = counter.clone_empty();
            let shown = DispatchMemory {
                parameters: &p,
                instances,
                results: &memory[0][..case.program.results.len() * instances],
                locations: &memory[2],
                is_copied: false,
            };
            let unwritten = host.count(&shown).unwrap();
            elsewhere += counted.outside_table;
            if unwritten.instances > 0 {
                let in_part = u64::from(case.program.results.len() > 1);
                assert_eq!(unwritten, Unwritten { instances: 2, partly_written: in_part }, "{name}");
                assert!(counted.outside_table >= unwritten.instances, "{name}");
                discarded += 1;
                continue;
            }
            unresolved += host.unresolved();
            unexpected += host.unexpected().len();
            assert_eq!(host.difference_from(&counted), None, "{name}, seed {seed}");
            if counted.outside_table == 0 {
                let mut device = counter.clone_empty();
                device.add_counted(&counted, p.rounds.into());
                assert_eq!(device.histogram(), host.histogram(), "{name}");
                assert_eq!(
                    (device.batches(), device.instances()),
                    (host.batches(), host.instances()),
                    "{name}"
                );
            } else {
                assert!(odd > 0, "{name}: nothing but rows was written");
            }
            let mut wrong = counted.clone();
            wrong.rows[0].1 += 1;
            assert!(host.difference_from(&wrong).is_some(), "a wrong count is noticed");
            let wrong = RowCounts { outside_table: counted.outside_table + 1, ..counted };
            assert!(host.difference_from(&wrong).is_some(), "a wrong sum is noticed");
        }
    }
    assert!(elsewhere > 100 && unexpected > 10 && discarded == TESTS.len() && unresolved > 0);
}

#[test]
fn sums_over_dispatches_agree_between_device_and_host() {
    for (name, text) in TESTS {
        let case = row_case(name, text);
        for batching in [false, true] {
            let (mut whole, mut parts) = (case.counter(batching), case.counter(batching));
            for seed in 10..14 {
                let memory = dispatch_memory(&case, &whole, 9, seed);
                let p = parameters();
                let instances = (p.groups * p.rounds * case.program.lanes) as usize;
                let shown = DispatchMemory {
                    parameters: &p,
                    instances,
                    results: &memory[0][..case.program.results.len() * instances],
                    locations: &memory[2],
                    is_copied: false,
                };
                whole.count(&shown).unwrap();
                let mut part = parts.clone_empty();
                part.count(&shown).unwrap();
                parts.merge(&part);
            }
            assert_eq!(parts.histogram(), whole.histogram(), "{name}");
            assert_eq!(parts.unexpected(), whole.unexpected(), "{name}");
            assert_eq!(parts.batches(), whole.batches(), "{name}");
            assert_eq!(parts.instances(), whole.instances(), "{name}");
            assert_eq!(parts.unresolved(), whole.unresolved(), "{name}");
        }
    }
}

#[test]
fn memory_is_reset_for_exactly_the_instances() {
    for (name, text) in TESTS {
        let case = row_case(name, text);
        let counter = case.counter(false);
        let classifier = case.classifier(&counter);
        let p = parameters();
        let instances = (p.groups * p.rounds * case.program.lanes) as usize;
        let (slots, words) = (case.program.results.len(), case.program.storage_words.max(1) as usize);
        let garbage = 0xcccc_cccc;
        let mut memory =
            [slots * instances + 40, 16, 11 * words * (instances + 2), 16].map(|size| vec![garbage; size]);
        // Only the reset kernel has left its receipts after the counters.
        let (counters, workgroups) = (classifier.counters as usize, classifier.workgroups as usize);
        memory[1] = vec![0; classifier.buffer_words() as usize];
        let mut expected = memory.clone();
        let place = |role| BUFFERS.iter().position(|known| known == role).unwrap();
        let lengths = classifier.reset.bindings.iter().map(|role| memory[place(role)].len() as u32);
        let lengths: Vec<u32> = lengths.collect();
        expected[1][counters..][..workgroups].fill(p.receipt(classifier.reset.identity, &lengths));
        expected[0][..slots * instances].fill(POISON);
        expected[0][slots * instances] = SALT;
        for instance in 0..=instances {
            for (storage, value) in case.program.initial_values.iter().enumerate() {
                for word in 0..words {
                    let unit = instance * p.stride as usize + storage * p.spacing as usize;
                    let initial = (value >> (32 * word)) as u32;
                    expected[2][unit * words + word] = if instance == instances { SALT } else { initial };
                }
            }
        }
        run_helper(&classifier.reset, classifier.workgroups, &mut memory);
        assert_eq!(memory, expected, "{name}");
    }
}

/// The results of another submission have the same length and plausible words, but another salt.
#[test]
fn a_count_of_other_results_leaves_another_receipt() {
    let case = row_case(TESTS[0].0, TESTS[0].1);
    let counter = case.counter(false);
    let classifier = case.classifier(&counter);
    assert_eq!(classifier.count.salted_buffers, [BufferRole::Results]);
    let (counters, workgroups) = (classifier.counters as usize, classifier.workgroups as usize);
    for salt in [SALT, SALT + 1] {
        let mut memory = dispatch_memory(&case, &counter, 0, 1);
        *memory[0].last_mut().unwrap() = salt;
        let lengths = [0, 1].map(|buffer: usize| memory[buffer].len() as u32);
        run_helper(&classifier.count, classifier.workgroups, &mut memory);
        let expected = parameters().receipt(classifier.count.identity, &[lengths[0], lengths[1], SALT]);
        let receipts = &memory[1][counters + workgroups..][..workgroups];
        assert!(receipts.iter().all(|receipt| (*receipt == expected) == (salt == SALT)), "{receipts:?}");
    }
}

/// Surplus workgroups only change the overflow word, which invalidates the counters.
#[test]
fn surplus_workgroups_add_to_the_overflow_word_only() {
    let case = row_case(TESTS[0].0, TESTS[0].1);
    let counter = case.counter(false);
    let classifier = case.classifier(&counter);
    let overflow = classifier.buffer_words() as usize - 1;
    for helper in [&classifier.reset, &classifier.count] {
        let run_with = |more: u32| {
            let mut memory = dispatch_memory(&case, &counter, 0, 1);
            run_helper(helper, classifier.workgroups + more, &mut memory);
            memory
        };
        let (requested, mut excessive) = (run_with(0), run_with(2));
        assert_eq!(requested[1][overflow], 0);
        let outside = std::mem::take(&mut excessive[1][overflow]);
        assert!(outside > 0 && outside.is_multiple_of(2), "{outside}");
        assert_eq!(requested, excessive);
    }
    let mut words = vec![0; classifier.buffer_words() as usize];
    let salts: &dyn Fn(BufferRole) -> u32 = &|_| SALT;
    let (counters, workgroups) = (classifier.counters as usize, classifier.workgroups as usize);
    let [reset, count] = [&classifier.reset, &classifier.count]
        .map(|helper| classifier.expected_receipt(helper, &parameters(), salts));
    words[counters..][..workgroups].fill(reset);
    words[counters + workgroups..][..workgroups].fill(count);
    assert!(classifier.verify_receipts(&words, &parameters(), salts).is_ok());
    words[overflow] = 7;
    let execution = classifier.verify_receipts(&words, &parameters(), salts);
    assert_eq!(execution, Err(Execution::Excessive { outside: 7 }));
    words[overflow - 1] += 1;
    assert_eq!(classifier.verify_receipts(&words, &parameters(), salts), Err(Execution::Incomplete));
}

/// A gap in the copy has the poison of its destination.
#[test]
fn poison_in_a_copy_of_locations_is_not_a_value() {
    let (name, text) = TESTS.iter().find(|(name, _)| *name == "float").unwrap();
    let case = row_case(name, text);
    let mut counter = case.counter(false);
    assert!(counter.reads_locations());
    let p = parameters();
    let instances = (p.groups * p.rounds * case.program.lanes) as usize;
    let [mut results, _, mut locations, _] = dispatch_memory(&case, &counter, 0, 1);
    results.truncate(case.program.results.len() * instances);
    locations.iter_mut().take(p.stride as usize).for_each(|word| *word = POISON);
    let mut shown = DispatchMemory {
        parameters: &p,
        instances,
        results: &results,
        locations: &locations,
        is_copied: true,
    };
    assert_eq!(counter.count(&shown).unwrap(), Unwritten { instances: 1, partly_written: 1 });
    assert_eq!(counter.instances(), 0);
    shown.is_copied = false;
    assert_eq!(counter.count(&shown).unwrap(), Unwritten::default());
}

#[test]
fn outcomes_that_a_device_cannot_count_have_a_reason() {
    let narrow = row_case(
        "narrow",
        "VULKAN n { u8x4 v = 0; } P0@sg 0, wg 0, qf 0 ; st.sc0 v, {1, 2, 3, 4} ; exists (v[1] == 2)",
    );
    let case = row_case(TESTS[0].0, TESTS[0].1);
    let counter = case.counter(false);
    let reason = |numbers: &[u32], capabilities: &Capabilities| {
        Classifier::new(
            &counter,
            &case.program,
            capabilities,
            &case.bounds,
            numbers,
            4,
            CountingPlace::Device,
        )
        .unwrap_err()
    };
    let capabilities = &narrow.capabilities;
    let counter_of_narrow = narrow.counter(false);
    let refused = Classifier::new(
        &counter_of_narrow,
        &narrow.program,
        capabilities,
        &narrow.bounds,
        &[0, 1],
        4,
        CountingPlace::Device,
    );
    assert_eq!(refused.unwrap_err(), "components of its vectors share a word");
    let many: Vec<u32> = (0..300).collect();
    assert_eq!(reason(&many, &case.capabilities), "its outcomes have more than 16384 rows");
    let old = Capabilities { memory_model: false, ..case.capabilities.clone() };
    assert_eq!(reason(&[0, 1], &old), "the device lacks vulkanMemoryModel");
}

/// Components narrower than a word are extracted from it.
#[test]
fn components_in_one_word_are_extracted() {
    let text = "VULKAN n { u8x4 v = 0; u16x3 w = 0; } P0@sg 0, wg 0, qf 0 ; st.sc0 v, {1, 2, 3, 4} ; \
                st.sc0 w, {1, 2, 3} ; exists (v[1] == 2 /\\ v[3] == 4 /\\ w[0] == 1 /\\ w[2] == 3)";
    let case = row_case("narrow", text);
    assert_eq!(case.program.storage_words, 2);
    let p = parameters();
    let instances = (p.groups * p.rounds * case.program.lanes) as usize;
    let results = vec![DONE; case.program.results.len() * instances];
    let mut locations = vec![0; instances * p.stride as usize * 2];
    for instance in 0..instances {
        let unit = instance * p.stride as usize;
        locations[2 * unit] = 0x0403_0201;
        let second = 2 * (unit + p.spacing as usize);
        (locations[second], locations[second + 1]) = (0x0002_0001, 0x0003 + instance as u32 % 2);
    }
    let mut counter = case.counter(false);
    let shown = DispatchMemory {
        parameters: &p,
        instances,
        results: &results,
        locations: &locations,
        is_copied: false,
    };
    counter.count(&shown).unwrap();
    let rows: Vec<(Vec<u64>, u64)> = counter
        .histogram()
        .counts
        .into_iter()
        .map(|(outcome, count)| (outcome.0.iter().map(|value| value.0).collect(), count))
        .collect();
    let half = instances as u64 / 2;
    assert_eq!(rows, [(vec![2, 4, 1, 3], half), (vec![2, 4, 1, 4], half)]);
}
