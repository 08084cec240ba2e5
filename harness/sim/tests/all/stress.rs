//! Memory stress on the simulated GPU causes no forbidden outcome, hides no fault, and is determined by the
//! seed.

use litmus::{Observation, Test};
use runner::{CountingPlace, MemoryStress, Stress};
use shaders::Variant;
use sim::{Fault, SimDevice};

use crate::common::{complete_prediction, disallowed_outcomes, instance_count, run_under, stress};

/// Returns memory stress of every kind, also on other queues, with outcomes counted by host and device.
fn stressed_layout(device: &SimDevice) -> Stress {
    let memory_stress = Some(MemoryStress {
        workgroups: (0, 4),
        iterations: (0, 4),
        pre_stress: (0, 3),
        percent: 80,
        line_words: (1, 16),
        lines: (1, 4),
        mix_workgroups: true,
        queue_workgroups: (1, 3),
        queue_iterations: (0, 3),
        ..MemoryStress::default()
    });
    Stress { memory_stress, spin: (0, 8), classify: CountingPlace::Both, ..stress(device) }
}

fn tests_of(suite: &str) -> Vec<Test> {
    let suites = litmus::corpus::suites();
    let entry = suites.iter().find(|entry| entry.id == suite).unwrap();
    let suite = litmus::suite::Suite::parse(entry.text, &entry.path).unwrap();
    let tests = litmus::corpus::tests();
    let ids = suite.select(tests.iter().map(|test| test.id.as_str())).unwrap();
    let wanted = tests.iter().filter(|entry| ids.contains(&entry.id));
    wanted.map(|entry| litmus::parse(entry.text, &entry.path).unwrap()).collect()
}

fn run(device: &SimDevice, test: &Test, count: u64, seed: u64) -> Option<Observation> {
    let ran = run_under(
        device,
        test,
        count,
        seed,
        Variant::default(),
        stressed_layout(device),
        runner::Join::Barrier,
    )?;
    Some(ran.map_err(|error| format!("{}: {error}", test.name)).unwrap())
}

#[test]
fn no_forbidden_outcome_occurs_under_stress() {
    let device = SimDevice::new(Fault::None);
    assert_sound(1, |test| run(&device, test, instance_count(400), 5));
}

/// Checks that one in `share` tests of the quick suite completes without forbidden outcomes under `run`.
fn assert_sound(share: usize, run: impl Fn(&Test) -> Option<Observation>) {
    let (mut ran, mut wrong) = (0, Vec::new());
    for test in tests_of("quick").into_iter().step_by(share) {
        let Some(seen) = run(&test) else { continue };
        let Some(prediction) = complete_prediction(&test) else { continue };
        ran += 1;
        wrong.extend(disallowed_outcomes(&test, &prediction, &seen));
    }
    assert!(ran > 90 / share, "{ran}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// On a full device each wait takes longer, but every dispatch completes.
#[test]
fn a_full_device_completes_without_forbidden_outcomes() {
    let device = SimDevice::new(Fault::None);
    let variant: Variant = "workgroups-1024".parse().unwrap();
    assert_sound(3, |test| {
        let seen = run_under(&device, test, 1, 9, variant, stress(&device), runner::Join::Barrier)?;
        Some(seen.map_err(|error| format!("{}: {error}", test.name)).unwrap())
    });
}

/// Each of 4,096 waves is scheduled rarely, which must not count as a hang.
#[test]
fn thousands_of_waves_end() {
    let device = SimDevice::new(Fault::None);
    let variant: Variant = "size-limit.workgroups-256".parse().unwrap();
    let test = tests_of("quick").into_iter().find(|test| test.name == "SB+cbar").unwrap();
    for seed in 0..2 {
        let (stress, join) = (stress(&device), runner::Join::Barrier);
        let seen = run_under(&device, &test, 1, seed, variant, stress, join).unwrap().unwrap();
        let prediction = complete_prediction(&test).unwrap();
        assert_eq!(disallowed_outcomes(&test, &prediction, &seen), [""; 0]);
    }
}

#[test]
fn a_fault_is_found_under_stress() {
    let tests = tests_of("faults");
    for name in ["acquire-no-invalidate", "release-no-flush"] {
        let device = SimDevice::new(name.parse().unwrap());
        let found = tests.iter().any(|test| {
            let Some(prediction) = complete_prediction(test) else { return false };
            let seen = run(&device, test, 2_000, 1);
            seen.is_some_and(|seen| !disallowed_outcomes(test, &prediction, &seen).is_empty())
        });
        assert!(found, "{name}");
    }
}

#[test]
fn stress_follows_from_the_seed() {
    let device = SimDevice::new(Fault::None);
    let tests = tests_of("quick");
    let test = tests.iter().find(|test| test.name == "SB+rlx-rlx").unwrap();
    let seen = |seed| run(&device, test, 3_000, seed).unwrap().histogram;
    assert_eq!(seen(1), seen(1));
    assert_ne!(seen(1), seen(2));
}
