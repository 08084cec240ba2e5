//! Runs the corpus: no forbidden outcome occurs, and most allowed weak outcomes do.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use litmus::{Prediction, Race, Test};
use sim::{Fault, SimDevice};

use crate::common::{complete_prediction, disallowed_outcomes, instance_count, run, run_variant};

/// A test of the corpus that can run.
struct Entry {
    id: String,
    test: Test,
    prediction: OnceLock<Option<Prediction>>,
}

impl Entry {
    /// Returns the model's prediction, computed once per test binary.
    fn prediction(&self) -> Option<&Prediction> {
        self.prediction.get_or_init(|| complete_prediction(&self.test)).as_ref()
    }
}

/// Every test that can run.
static CORPUS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let runnable = runnable_tests().into_iter();
    runnable.map(|(id, test)| Entry { id, test, prediction: OnceLock::new() }).collect()
});

fn runnable_tests() -> Vec<(String, Test)> {
    let tests = litmus::corpus::tests().into_iter().filter_map(|entry| {
        let test = litmus::parse(entry.text, &entry.path).ok()?;
        if test.dialect == litmus::Dialect::Hsa {
            // A device runs the lowered program, without the filter.
            return Some((entry.id, Test { filter: None, ..litmus::lower_to_vulkan(&test).ok()?.test }));
        }
        (test.filter.is_none() && test.khronos.is_none() && test.dialect == litmus::Dialect::Vulkan)
            .then_some((entry.id, test))
    });
    tests.collect()
}

#[test]
fn no_forbidden_outcome_and_most_weak_outcomes_occur() {
    let device = SimDevice::new(Fault::None);
    let (mut total, mut wrong) = (0, Vec::new());
    let (mut shown, mut weak, mut never) = (0, 0, Vec::new());
    // By folder: the number of tests that ran, and the number of all tests.
    let mut folders: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for entry in CORPUS.iter() {
        let Entry { id, test, .. } = entry;
        let folder = folders.entry(id.split('/').next().unwrap_or_default().to_owned()).or_default();
        folder.1 += 1;
        let Some(seen) = run(&device, test, instance_count(2_000), 11) else { continue };
        folder.0 += 1;
        let seen = seen.unwrap_or_else(|error| panic!("{id}: {error}"));
        let Some(prediction) = entry.prediction() else { continue };
        total += seen.accounted_instances();
        wrong.extend(disallowed_outcomes(test, prediction, &seen));
        if prediction.race != Race::Free {
            continue;
        }
        for (outcome, _) in
            prediction.outcomes.iter().filter(|(_, says)| says.allowed && says.weak && !says.thin_air)
        {
            weak += 1;
            if seen.histogram.counts.contains_key(outcome) {
                shown += 1;
            } else {
                never.push(format!("{id}: {outcome:?}"));
            }
        }
    }
    let ran: u32 = folders.values().map(|(ran, _)| ran).sum();
    println!("{ran} tests, {total} instances, weak outcomes shown {shown} of {weak}; never: {never:#?}");
    println!("ran, of all, by folder: {folders:?}");
    assert!(ran > 300, "{ran}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(shown * 10 >= weak * 7, "{shown} of {weak}");
}

#[test]
fn no_variant_shows_a_forbidden_outcome() {
    let device = SimDevice::new(Fault::None);
    let (mut ran, mut wrong) = (BTreeMap::new(), Vec::new());
    // A soak runs every variant of each test; otherwise each test has one in 36.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 36 };
    let entries = CORPUS.iter().filter(|entry| !entry.id.starts_with("hsa/"));
    for (index, entry) in entries.enumerate() {
        let Entry { id, test, .. } = entry;
        // Variants with the same meaning share a prediction.
        let mut predicted: Vec<(Test, Option<Prediction>)> = Vec::new();
        for (number, (name, variant)) in shaders::variant::words().enumerate() {
            if !(index + number).is_multiple_of(share) {
                continue;
            }
            let Ok(meaning) = shaders::effective_test(test, variant) else { continue };
            let Some(seen) = run_variant(&device, test, instance_count(600), 3, variant) else { continue };
            let seen = seen.unwrap_or_else(|error| panic!("{id} {name}: {error}"));
            let prediction = if meaning == *test {
                entry.prediction()
            } else {
                let known = predicted.iter().position(|(known, _)| *known == meaning);
                let index = known.unwrap_or_else(|| {
                    let prediction = complete_prediction(&meaning);
                    predicted.push((meaning, prediction));
                    predicted.len() - 1
                });
                predicted[index].1.as_ref()
            };
            let Some(prediction) = prediction else { continue };
            *ran.entry(name).or_insert(0) += 1;
            wrong.extend(
                disallowed_outcomes(test, prediction, &seen).into_iter().map(|w| format!("{name} {w}")),
            );
        }
    }
    println!("{ran:?}");
    assert!(
        shaders::variant::words().all(|(name, _)| ran.get(name).is_some_and(|count| *count > 3)),
        "{ran:?}"
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The shapes that every weak machine must show, by test id.
const SHAPES: [&str; 18] = [
    "mp/MP+rlx-rlx",
    "sb/SB+rlx-rlx",
    "sb/SB+relacq-relacq",
    "lb/LB+rlx-rlx",
    "s/S+rlx-rlx",
    "r/R+rlx-rlx",
    "2+2w/2+2W+rlx-rlx",
    "wrc/WRC+rlx-rlx-rlx",
    "isa2/ISA2+rlx-rlx-rlx",
    "iriw/IRIW+rlx",
    "avvis/MP+rel-acq.noav",
    "avvis/MP+rel-acq.novis",
    "avvis/MP+rel-acq.private",
    "scopes/RMW+add-add.wg-far",
    "avvis/MP+rel-acq.av-wg-far",
    "barrier/MP+cbar.noav",
    // The components of one access are separate operations.
    "vectors/Race+vec2-vec2.torn",
    "vectors/MP+rlx-rlx.vec4",
];

#[test]
fn the_weak_shapes_show() {
    let device = SimDevice::new(Fault::None);
    let mut missing = Vec::new();
    for id in SHAPES {
        let Some(Entry { test, .. }) = CORPUS.iter().find(|entry| entry.id == id) else {
            missing.push(format!("{id} is no test"));
            continue;
        };
        let seen = run(&device, test, instance_count(60_000), 5).unwrap().unwrap();
        let meets = |outcome: &litmus::Outcome| {
            test.question
                .as_ref()
                .is_some_and(|q| outcome.meets_condition(test, &test.observables(), &q.condition))
        };
        let count: u64 = seen.histogram.counts.iter().filter(|(o, _)| meets(o)).map(|(_, n)| *n).sum();
        println!("{id}: {count} of {}", seen.accounted_instances());
        if count == 0 {
            missing.push(id.to_owned());
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
