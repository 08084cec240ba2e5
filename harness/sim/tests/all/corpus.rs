//! The corpus: nothing forbidden is ever shown, and most of what is weak and allowed is.

use litmus::{Race, Test};
use sim::{Fault, SimDevice};

use crate::common::{exceptions, instances, prediction, run};

/// Every test that can run, with its prediction.
fn corpus() -> Vec<(String, Test)> {
    let tests = litmus::corpus::tests().into_iter().filter_map(|entry| {
        let test = litmus::parse(entry.text, &entry.path).ok()?;
        (test.filter.is_none() && test.khronos.is_none()).then_some((entry.id, test))
    });
    tests.collect()
}

#[test]
fn nothing_forbidden_is_shown_and_most_of_what_is_weak_is() {
    let device = SimDevice::new(Fault::None);
    let (mut ran, mut total, mut wrong) = (0, 0, Vec::new());
    let (mut shown, mut weak, mut never) = (0, 0, Vec::new());
    for (id, test) in corpus() {
        let Some(seen) = run(&device, &test, instances(10_000), 11) else { continue };
        let seen = seen.unwrap_or_else(|error| panic!("{id}: {error}"));
        let Some(prediction) = prediction(&test) else { continue };
        ran += 1;
        total += seen.instances();
        wrong.extend(exceptions(&test, &prediction, &seen));
        if prediction.race != Race::Free {
            continue;
        }
        for (outcome, _) in prediction.outcomes.iter().filter(|(_, says)| says.allowed && says.weak) {
            weak += 1;
            if seen.histogram.counts.contains_key(outcome) {
                shown += 1;
            } else {
                never.push(format!("{id}: {outcome:?}"));
            }
        }
    }
    println!("{ran} tests, {total} instances, weak outcomes shown {shown} of {weak}; never: {never:#?}");
    assert!(ran > 150, "{ran}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(shown * 3 >= weak * 2, "{shown} of {weak}");
}

/// The shapes that every weak machine must show, by test id.
const SHAPES: [&str; 16] = [
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
