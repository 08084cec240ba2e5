//! Runs whose first part does not show a previously observed weak outcome: the rest has another layout.

use litmus::{Observation, Outcome, Value};
use runner::{RunBudget, RunMetadata, RunSettings, RunVariant, SpreadPart};
use sim::{Fault, SimDevice};

use crate::common::{compile, corpus_test, run_mechanisms, stress};

const INSTANCES: u64 = 20_000;

/// Runs a corpus test with an expected outcome.
fn run(id: &str, expected: Vec<Outcome>, seed: u64) -> (Observation, Option<SpreadPart>) {
    let (seen, known) = run_with(id, seed, RunMetadata::default(), |settings| settings.expected = expected);
    (seen, known.spread)
}

/// Runs a corpus test with facts about the device and other settings.
fn run_with(
    id: &str,
    seed: u64,
    mut metadata: RunMetadata,
    change: impl FnOnce(&mut RunSettings),
) -> (Observation, RunMetadata) {
    let test = corpus_test(id);
    let device = SimDevice::new(Fault::None);
    let runnable = compile(&device, &test, RunVariant::default()).unwrap();
    let mut settings = RunSettings::new(stress(&device), RunBudget::instances(INSTANCES), seed);
    change(&mut settings);
    let ran = run_mechanisms(&device, &runnable, &test, &settings, &mut metadata);
    (ran.unwrap(), metadata)
}

fn outcome(values: &[u64]) -> Outcome {
    Outcome(values.iter().copied().map(Value).collect())
}

fn counts(seen: &Observation) -> Vec<(&Outcome, u64)> {
    seen.histogram.counts.iter().map(|(outcome, count)| (outcome, *count)).collect()
}

#[test]
fn a_run_with_the_expected_outcome_has_one_layout() {
    let (plain, none) = run("sb/SB+rlx-rlx", Vec::new(), 1);
    let weak = outcome(&[0, 0]);
    assert!(none.is_none() && plain.histogram.counts[&weak] > 0);
    let (same, spread) = run("sb/SB+rlx-rlx", vec![weak], 1);
    assert_eq!((counts(&same), spread), (counts(&plain), None));
}

/// Both parts count, their sum is the budget, and the seed determines them.
#[test]
fn a_run_without_the_expected_outcome_changes_its_layout() {
    let run = || run("sb/SB+rlx-rlx", vec![outcome(&[7, 7])], 1);
    let (seen, spread) = run();
    let spread = spread.unwrap();
    assert_eq!((seen.accounted_instances(), spread.weak), (spread.first + spread.second, 0));
    assert!(spread.first >= INSTANCES / 2 && spread.first + spread.second >= INSTANCES, "{spread:?}");
    let (was, now) = (stress(&SimDevice::new(Fault::None)), spread.stress.clone().unwrap());
    assert!(now.spacing.1 > was.spacing.1 && now.padding.1 > was.padding.1 && now.hold.1 > was.hold.1);
    let (again, part) = run();
    assert_eq!((counts(&again), part), (counts(&seen), Some(spread)));
}

/// Without a baseline, a calibration shows that the device has weak outcomes. On a device without them, the layout stays.
#[test]
fn a_calibrated_run_changes_its_layout_on_a_weak_device() {
    let barren = |settings: &mut RunSettings| settings.calibrated = vec![outcome(&[7, 7])];
    let (seen, known) = run_with("sb/SB+rlx-rlx", 1, RunMetadata::default(), barren);
    let spread = known.spread.unwrap();
    assert_eq!(known.store_buffering, Some(true));
    assert_eq!(seen.accounted_instances(), spread.first + spread.second);
    let strong = RunMetadata { store_buffering: Some(false), ..RunMetadata::default() };
    let (seen, known) = run_with("sb/SB+rlx-rlx", 1, strong, barren);
    assert_eq!((known.spread, known.store_buffering), (None, Some(false)));
    assert!(seen.accounted_instances() >= INSTANCES);
    // No test that shows its weak outcome is calibrated.
    let weak = |settings: &mut RunSettings| settings.calibrated = vec![outcome(&[0, 0])];
    let (_, known) = run_with("sb/SB+rlx-rlx", 1, RunMetadata::default(), weak);
    assert_eq!((known.spread, known.store_buffering), (None, None));
}

/// An outcome that only occurs in the second part of a run is counted there.
#[test]
fn a_rare_outcome_of_the_second_part_is_counted_there() {
    let weak = outcome(&[1, 0, 1, 0]);
    let found = (0..100).find_map(|seed| {
        let (seen, spread) = run("iriw/IRIW+rel-acq", vec![weak.clone()], seed);
        Some((seen.histogram.counts.get(&weak).copied(), spread.filter(|spread| spread.weak > 0)?.weak))
    });
    let (all, second) = found.unwrap();
    assert_eq!(all, Some(second));
}
