//! Subgroup operations and barriers in divergent control flow: lanes reconverge exactly as each reading of
//! the specification allows.

use std::collections::BTreeSet;

use litmus::{Outcome, Race, Test};
use model::{Model, PredictOptions};
use sim::{Fault, SimDevice};

use crate::common::{complete_prediction, disallowed_outcomes, instance_count, run};

/// Returns the race-free tests with such operations or barriers.
fn divergent_tests() -> Vec<Test> {
    let tests = litmus::corpus::tests().into_iter().filter(|entry| entry.id.starts_with("subgroup/"));
    let parsed = tests.map(|entry| litmus::parse(entry.text, &entry.path).unwrap());
    let guarded = parsed.filter(Test::has_guarded_blocks);
    guarded.filter(|test| complete_prediction(test).unwrap().race == Race::Free).collect()
}

fn allowed_outcomes(test: &Test, reading: &str) -> BTreeSet<Outcome> {
    let model = Model::shipped(reading).unwrap().unwrap();
    let prediction = model::predict(test, &model, &PredictOptions::default()).unwrap();
    assert!(prediction.complete, "{}", test.name);
    prediction.outcomes.into_iter().filter(|(_, says)| says.allowed).map(|(outcome, _)| outcome).collect()
}

fn observed_outcomes(device: &SimDevice, test: &Test) -> BTreeSet<Outcome> {
    let seen = run(device, test, instance_count(5_000), 7).unwrap().unwrap();
    if device.fault() == Fault::None {
        let wrong = disallowed_outcomes(test, &complete_prediction(test).unwrap(), &seen);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    seen.histogram.counts.into_keys().collect()
}

#[test]
fn tangles_split_and_join_by_each_reading() {
    let device = SimDevice::new(Fault::None);
    let tests = divergent_tests();
    assert!(tests.len() >= 13, "{}", tests.len());
    let mut distinguished = 0;
    for test in tests {
        let seen = observed_outcomes(&device, &test);
        let [any, apart, together] =
            ["vulkan", "vulkan-apart", "vulkan-together"].map(|reading| allowed_outcomes(&test, reading));
        println!("{}: {} of {} outcomes seen", test.name, seen.len(), any.len());
        assert!(seen.is_subset(&any), "{}: {seen:?} are not all in {any:?}", test.name);
        if apart != together {
            distinguished += 1;
            assert!(apart.is_subset(&seen), "{}: of {apart:?} only {seen:?}", test.name);
            assert!(together.is_subset(&seen), "{}: of {together:?} only {seen:?}", test.name);
        }
        // If the readings agree on every lane, no choice is random.
        assert_eq!(seen, any, "{}", test.name);
    }
    assert!(distinguished >= 4, "{distinguished}");
}

#[test]
fn ignored_maximal_reconvergence_is_detected() {
    let device = SimDevice::new(Fault::MaximalReconvergenceIgnored);
    let mut found = Vec::new();
    for test in divergent_tests() {
        let outside: Vec<Outcome> = {
            let any = allowed_outcomes(&test, "vulkan");
            observed_outcomes(&device, &test).into_iter().filter(|outcome| !any.contains(outcome)).collect()
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
    let expected = [
        "MP+cbar.branch",
        "MP+cbar.nested-merge.maximal",
        "MP+cbar.read-guard.atomic",
        "MP+cbar.stays-together",
    ];
    for fault in [Fault::BarrierDoesNotWait, Fault::BarrierOrdersNothing] {
        let device = SimDevice::new(fault);
        let broken: Vec<String> = divergent_tests()
            .into_iter()
            .filter(|test| expected.contains(&test.name.as_str()))
            .filter(|test| !observed_outcomes(&device, test).is_subset(&allowed_outcomes(test, "vulkan")))
            .map(|test| test.name)
            .collect();
        assert_eq!(broken, expected, "{fault:?}");
    }
}
