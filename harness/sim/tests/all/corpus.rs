//! Runs the corpus: no forbidden outcome appears, and most weak outcomes that are allowed do.

use std::collections::BTreeMap;

use litmus::{Race, Test};
use sim::{Fault, SimDevice};

use crate::common::{exceptions, instances, prediction, run, run_variant};

/// Returns every runnable test with its prediction.
fn corpus() -> Vec<(String, Test)> {
    let tests = litmus::corpus::tests().into_iter().filter_map(|entry| {
        let test = litmus::parse(entry.text, &entry.path).ok()?;
        if test.dialect == litmus::Dialect::Hsa {
            // A device runs the lowered program without filters.
            return Some((entry.id, Test { filter: None, ..litmus::lower(&test).ok()?.test }));
        }
        (test.filter.is_none() && test.khronos.is_none() && test.dialect == litmus::Dialect::Vulkan)
            .then_some((entry.id, test))
    });
    tests.collect()
}

#[test]
fn nothing_forbidden_is_shown_and_most_of_what_is_weak_is() {
    let device = SimDevice::new(Fault::None);
    let (mut total, mut wrong) = (0, Vec::new());
    let (mut shown, mut weak, mut never) = (0, 0, Vec::new());
    // By folder: the number of tests that ran, and of all tests.
    let mut folders: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (id, test) in corpus() {
        let folder = folders.entry(id.split('/').next().unwrap_or_default().to_owned()).or_default();
        folder.1 += 1;
        let Some(seen) = run(&device, &test, instances(10_000), 11) else { continue };
        folder.0 += 1;
        let seen = seen.unwrap_or_else(|error| panic!("{id}: {error}"));
        let Some(prediction) = prediction(&test) else { continue };
        total += seen.instances();
        wrong.extend(exceptions(&test, &prediction, &seen));
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
fn no_way_to_tell_a_test_shows_anything_forbidden() {
    let device = SimDevice::new(Fault::None);
    let (mut ran, mut wrong) = (BTreeMap::new(), Vec::new());
    for (id, test) in corpus().into_iter().filter(|(id, _)| !id.starts_with("hsa/")) {
        for (name, variant) in shaders::variant::words() {
            let Ok(told) = shaders::meaning(&test, variant) else { continue };
            let Some(seen) = run_variant(&device, &test, instances(600), 3, variant) else { continue };
            let seen = seen.unwrap_or_else(|error| panic!("{id} {name}: {error}"));
            let Some(prediction) = prediction(&told) else { continue };
            *ran.entry(name).or_insert(0) += 1;
            wrong.extend(exceptions(&test, &prediction, &seen).into_iter().map(|w| format!("{name} {w}")));
        }
    }
    println!("{ran:?}");
    assert!(
        shaders::variant::words().all(|(name, _)| ran.get(name).is_some_and(|count| *count > 20)),
        "{ran:?}"
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Test ids of weak shapes that every weak machine must show.
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
    // The components of one access perform separately.
    "vectors/Race+vec2-vec2.torn",
    "vectors/MP+rlx-rlx.vec4",
];

#[test]
fn the_weak_shapes_show() {
    let device = SimDevice::new(Fault::None);
    let corpus = corpus();
    let mut missing = Vec::new();
    for id in SHAPES {
        let Some((_, test)) = corpus.iter().find(|(known, _)| known == id) else {
            missing.push(format!("{id} is no test"));
            continue;
        };
        let seen = run(&device, test, instances(60_000), 5).unwrap().unwrap();
        let meets = |outcome: &litmus::Outcome| {
            test.question.as_ref().is_some_and(|q| outcome.meets(test, &test.observables(), &q.condition))
        };
        let count: u64 = seen.histogram.counts.iter().filter(|(o, _)| meets(o)).map(|(_, n)| *n).sum();
        println!("{id}: {count} of {}", seen.instances());
        if count == 0 {
            missing.push(id.to_owned());
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
