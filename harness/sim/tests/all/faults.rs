//! Tests of faults: the suite detects each visible fault, and reports no violation of a sound device.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use litmus::suite::Suite;
use litmus::{Observation, Outcome, Prediction, Race, Test};
use runner::{RunError, RunVariant, Runnable};
use sim::{ExpectedEffect, FAULTS, Fault, SimDevice};

use crate::common::{compile, complete_prediction, disallowed_outcomes, run_instances};

/// A test of the suite.
struct Case {
    id: String,
    test: Test,
    prediction: Prediction,
    runnable: Runnable,
}

impl Case {
    fn run(&self, device: &SimDevice, instances: u64, seed: u64) -> Result<Observation, RunError> {
        run_instances(device, &self.runnable, &self.test, instances, seed)
    }
}

/// Returns a test with its variant, if the device can run it and it is race-free.
fn race_free_case(id: String, text: &str, device: &SimDevice) -> Option<Case> {
    let variant: RunVariant = id.split_once('@').map_or("", |(_, variant)| variant).parse().unwrap();
    let test = litmus::parse(text, &id).unwrap();
    let runnable = compile(device, &test, variant).ok()?;
    let prediction = complete_prediction(&shaders::effective_test(&test, variant.shader).ok()?)?;
    (prediction.race == Race::Free).then_some(Case { id, test, prediction, runnable })
}

/// Returns the race-free tests of the suite.
fn race_free_cases() -> Vec<Case> {
    let suites = litmus::corpus::suites();
    let entry = suites.iter().find(|suite| suite.id == "faults").unwrap();
    let suite = Suite::parse(entry.text, &entry.path).unwrap();
    let (tests, device) = (litmus::corpus::tests(), SimDevice::new(Fault::None));
    let ids = suite.select(tests.iter().map(|test| test.id.as_str())).unwrap();
    let cases = ids.into_iter().filter_map(|id| {
        let name = id.split_once('@').map_or(&*id, |(name, _)| name);
        let entry = tests.iter().find(|test| test.id == name)?;
        race_free_case(id, entry.text, &device)
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
    for row in FAULTS.iter() {
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

/// Faults that depend on the form of a kernel are invisible in tests, and visible in transformed forms of a few.
#[test]
fn forms_detect_the_faults_that_tests_do_not() {
    const TESTS: [&str; 4] = ["mp/MP+rel-acq", "s/S+rel-acq", "isa2/ISA2+rel-acqrel-acq", "rmw/RMW+add-add"];
    const FORMS: u32 = 60;
    let (sound, tests) = (SimDevice::new(Fault::None), litmus::corpus::tests());
    let texts = || TESTS.iter().filter_map(|id| tests.iter().find(|entry| entry.id == *id));
    let of_form = |form| texts().map(move |entry| (format!("{}@form-{form}", entry.id), entry.text));
    let cases: Vec<Case> =
        (1..=FORMS).flat_map(of_form).filter_map(|(id, text)| race_free_case(id, text, &sound)).collect();
    assert!(cases.len() > 200, "{}", cases.len());
    for row in FAULTS.iter().filter(|row| row.family == "forms of kernels") {
        let device = SimDevice::new(row.fault);
        let finds = |case: &&Case| {
            let seen = case.run(&device, 500, 1).unwrap_or_else(|error| panic!("{}: {error}", case.id));
            !disallowed_outcomes(&case.test, &case.prediction, &seen).is_empty()
        };
        let found = cases.iter().find(finds);
        println!("{:32} {}", row.name, found.map_or("nothing", |case| &case.id));
        assert!(found.is_some(), "{}", row.name);
    }
}

#[test]
fn a_sound_device_conforms_in_every_form() {
    let device = SimDevice::new(Fault::None);
    let mut runs = 0;
    for (number, entry) in litmus::corpus::tests().into_iter().enumerate().step_by(2) {
        let id = format!("{}@form-{number}", entry.id);
        let Some(case) = race_free_case(id, entry.text, &device) else { continue };
        let seen = case.run(&device, 500, 1).unwrap_or_else(|error| panic!("{}: {error}", case.id));
        assert_eq!(
            disallowed_outcomes(&case.test, &case.prediction, &seen),
            Vec::<String>::new(),
            "{}",
            case.id
        );
        runs += usize::from(seen.accounted_instances() > 0);
    }
    assert!(runs > 150, "{runs}");
}

/// Faults that split read-modify-writes break neither their semantics nor, with one of them, the order of
/// read-modify-writes of any size.
#[test]
fn split_read_modify_writes_break_one_rule() {
    let message = "VULKAN MP\n{ x = 0; f = 0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        st.nonpriv.sc0 x, 1 | rmw.atom.acq.dv.sc0.semsc0.semvis.add r0, f, 2 ;\n\
        rmw.atom.rel.dv.sc0.semsc0.semav.add r0, f, 1 | bne r0, 1, LC00 ;\n\
        | ld.nonpriv.sc0 r1, x ;\n\
        | LC00: ;\n\
        exists (P1:r0 == 1 /\\ P1:r1 == 0)";
    let corpus = litmus::corpus::tests();
    let text_of = |id: &str| corpus.iter().find(|test| test.id == id).unwrap().text;
    for (fault, id, text) in [
        (Fault::RmwNotAtomic, "MP", message),
        (Fault::RmwAmongThemselves, "types/RMW+add-add.u64", text_of("types/RMW+add-add.u64")),
        (Fault::RmwAmongThemselves, "rmw/RMW+add-add", text_of("rmw/RMW+add-add")),
    ] {
        let device = SimDevice::new(fault);
        let case = race_free_case(id.to_owned(), text, &device).unwrap();
        let seen = case.run(&device, 20_000, 1).unwrap();
        assert!(seen.accounted_instances() > 0);
        let condition = &case.test.question.as_ref().unwrap().condition;
        let observables = &case.prediction.observables;
        let is_shown = |outcome: &Outcome| outcome.meets_condition(&case.test, observables, condition);
        let shown: Vec<&Outcome> = seen.histogram.counts.keys().filter(|outcome| is_shown(outcome)).collect();
        assert!(shown.is_empty(), "{fault:?} {id}: {shown:?}");
    }
}
