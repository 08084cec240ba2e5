//! Tests of faults: the suite detects each visible fault, and reports no violation of a sound device.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use litmus::suite::Suite;
use litmus::{Observation, Prediction, Race, Test};
use plan::Device;
use runner::{RunBudget, RunError, RunMetadata, RunSettings, RunVariant, Runnable};
use sim::{ExpectedEffect, FAULTS, Fault, SimDevice};

use crate::common::{complete_prediction, disallowed_outcomes, stress};

/// A test of the suite.
struct Case {
    id: String,
    test: Test,
    prediction: Prediction,
    runnable: Runnable,
}

impl Case {
    fn run(&self, device: &SimDevice, instances: u64, seed: u64) -> Result<Observation, RunError> {
        let settings = RunSettings::new(stress(device), RunBudget::instances(instances), seed);
        let (program, mechanisms) = (&self.runnable.program, self.runnable.mechanisms());
        let on_progress = &mut |_: &dyn Fn() -> runner::PartialRun| ControlFlow::Continue(());
        runner::run_mechanisms(
            device,
            program,
            &mechanisms,
            &self.test,
            &settings,
            &mut RunMetadata::default(),
            on_progress,
        )
    }
}

/// Returns the race-free tests of the suite.
fn race_free_cases() -> Vec<Case> {
    let suites = litmus::corpus::suites();
    let entry = suites.iter().find(|suite| suite.id == "faults").unwrap();
    let suite = Suite::parse(entry.text, &entry.path).unwrap();
    let tests = litmus::corpus::tests();
    let device = SimDevice::new(Fault::None);
    let ids = suite.select(tests.iter().map(|test| test.id.as_str())).unwrap();
    let cases = ids.into_iter().filter_map(|id| {
        let (name, variant) = id.split_once('@').unwrap_or((&id, ""));
        let entry = tests.iter().find(|test| test.id == name)?;
        let variant: RunVariant = variant.parse().unwrap();
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        let runnable =
            runner::compile_for_device(&test, variant, &stress(&device), device.capabilities()).ok()?;
        let prediction = complete_prediction(&shaders::effective_test(&test, variant.shader).ok()?)?;
        (prediction.race == Race::Free).then_some(Case { id, test, prediction, runnable })
    });
    cases.collect()
}

/// Returns the tests that detected each fault in the committed matrix, by the name of the fault.
fn known_finders() -> HashMap<String, Vec<String>> {
    let matrix: serde_json::Value =
        serde_json::from_str(include_str!("../../../../results/power/faults.json")).unwrap();
    let row = |row: &serde_json::Value| {
        let tests = row["found_by"].as_object().into_iter().flat_map(|steps| steps.values());
        let tests = tests.filter_map(|tests| tests.as_array()).flatten();
        (
            row["name"].as_str().unwrap().to_owned(),
            tests.map(|test| test.as_str().unwrap().to_owned()).collect(),
        )
    };
    matrix["faults"].as_array().unwrap().iter().map(row).collect()
}

/// Returns the effect of a fault on the suite: `expected` if some test has it, else the first effect.
///
/// The suite starts with the tests that are known to detect the fault.
fn find_effect(fault: Fault, suite: &[Case], expected: &str, limit: Duration) -> (&'static str, String) {
    let device = SimDevice::new(fault);
    let since = Instant::now();
    let mut inconclusive = None;
    for (round, instances) in [1_000, 5_000, 50_000, 200_000].into_iter().enumerate() {
        for case in suite {
            let by = match case.run(&device, instances, round as u64) {
                Err(error) => error.to_string(),
                Ok(seen) if seen.discarded_dispatches * 100 > seen.dispatches => "not executed".into(),
                Ok(seen) => {
                    if let Some(wrong) = disallowed_outcomes(&case.test, &case.prediction, &seen).first() {
                        return ("violates", format!("{}: {wrong}, {instances} instances a test", case.id));
                    }
                    String::new()
                }
            };
            if !by.is_empty() {
                let first = inconclusive.get_or_insert_with(|| format!("{}: {by}", case.id));
                // A fault may destroy the records of one test, and be detected by those of another.
                if expected != "violates" {
                    return ("inconclusive", first.clone());
                }
            }
            if since.elapsed() > limit {
                return inconclusive.map_or(("invisible", "time is up".into()), |by| ("inconclusive", by));
            }
        }
    }
    inconclusive.map_or(("invisible", "nothing".into()), |by| ("inconclusive", by))
}

#[test]
fn the_suite_detects_every_visible_fault() {
    let mut suite = race_free_cases();
    assert!(suite.len() > 10);
    let finders = known_finders();
    let mut wrong = Vec::new();
    for row in FAULTS {
        // A matrix without this fault changes only the order.
        let known = finders.get(row.name);
        suite.sort_by_key(|case| !known.is_some_and(|tests| tests.contains(&case.id)));
        let invisible = matches!(row.expect, ExpectedEffect::Invisible(_));
        // The search for a fault that is declared invisible is short.
        let limit = if invisible { Duration::from_millis(300) } else { Duration::from_secs(60) };
        let since = Instant::now();
        let (found, by) = find_effect(row.fault, &suite, row.expect.word(), limit);
        println!("{:32} {found:12} {:>6} ms  {by}", row.name, since.elapsed().as_millis());
        if found != row.expect.word() {
            wrong.push(format!("{}: {found}, not {}: {by}", row.name, row.expect.word()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
