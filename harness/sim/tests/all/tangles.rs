//! Subgroup operations and barriers in divergent control flow: lanes reconverge exactly as each reading of
//! the specification allows.

use std::collections::BTreeSet;

use litmus::{Outcome, Race, Test};
use model::{Model, Options};
use sim::{Fault, SimDevice};

use crate::common::{exceptions, instances, prediction, run};

/// Returns the race-free tests with such operations or barriers.
fn guarded() -> Vec<Test> {
    let tests = litmus::corpus::tests().into_iter().filter(|entry| entry.id.starts_with("subgroup/"));
    let parsed = tests.map(|entry| litmus::parse(entry.text, &entry.path).unwrap());
    let guarded = parsed.filter(Test::has_blocks);
    guarded.filter(|test| prediction(test).unwrap().race == Race::Free).collect()
}

/// Returns the outcomes that a reading allows.
fn allowed(test: &Test, reading: &str) -> BTreeSet<Outcome> {
    let model = Model::shipped(reading).unwrap().unwrap();
    let said = model::predict(test, &model, &Options::default()).unwrap();
    assert!(said.complete, "{}", test.name);
    said.outcomes.into_iter().filter(|(_, says)| says.allowed).map(|(outcome, _)| outcome).collect()
}

fn seen(device: &SimDevice, test: &Test) -> BTreeSet<Outcome> {
    let seen = run(device, test, instances(5_000), 7).unwrap().unwrap();
    if device.fault() == Fault::None {
        let wrong = exceptions(test, &prediction(test).unwrap(), &seen);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    seen.histogram.counts.into_keys().collect()
}

#[test]
fn tangles_split_and_join_by_each_reading() {
    let device = SimDevice::new(Fault::None);
    let tests = guarded();
    assert!(tests.len() >= 13, "{}", tests.len());
    let mut told_apart = 0;
    for test in tests {
        let seen = seen(&device, &test);
        let [any, apart, together] =
            ["vulkan", "vulkan-apart", "vulkan-together"].map(|reading| allowed(&test, reading));
        println!("{}: {} of {} outcomes seen", test.name, seen.len(), any.len());
        assert!(seen.is_subset(&any), "{}: {seen:?} are not all in {any:?}", test.name);
        if apart != together {
            told_apart += 1;
            assert!(apart.is_subset(&seen), "{}: of {apart:?} only {seen:?}", test.name);
            assert!(together.is_subset(&seen), "{}: of {together:?} only {seen:?}", test.name);
        }
        // If the readings agree on every lane, no choice is random.
        assert_eq!(seen, any, "{}", test.name);
    }
    assert!(told_apart >= 4, "{told_apart}");
}

#[test]
fn ignored_maximal_reconvergence_is_detected() {
    let device = SimDevice::new(Fault::MaximalReconvergenceIgnored);
    let mut found = Vec::new();
    for test in guarded() {
        let outside: Vec<Outcome> = {
            let any = allowed(&test, "vulkan");
            seen(&device, &test).into_iter().filter(|outcome| !any.contains(outcome)).collect()
        };
        if !outside.is_empty() {
            found.push(test.name.clone());
        }
    }
    let expected =
        ["Ballot+nested-merge.maximal", "Compaction+slots.maximal", "MP+cbar.nested-merge.maximal"];
    assert_eq!(found, expected);
}

/// Barriers in divergent control flow order accesses: a fault without waiting or memory effects is detected.
#[test]
fn ineffective_tangle_barriers_are_detected() {
    let promises = [
        "MP+cbar.branch",
        "MP+cbar.nested-merge.maximal",
        "MP+cbar.read-guard.atomic",
        "MP+cbar.stays-together",
    ];
    for fault in [Fault::BarrierDoesNotWait, Fault::BarrierOrdersNothing] {
        let device = SimDevice::new(fault);
        let broken: Vec<String> = guarded()
            .into_iter()
            .filter(|test| promises.contains(&test.name.as_str()))
            .filter(|test| !seen(&device, test).is_subset(&allowed(test, "vulkan")))
            .map(|test| test.name)
            .collect();
        assert_eq!(broken, promises, "{fault:?}");
    }
}
