//! Tests with queues, host threads and API calls: calls order their accesses in every variant, and each
//! removed call is detected.

use litmus::{Observation, Race, Test};
use runner::{Join, RunError, RunVariant};
use sim::{Fault, SimDevice};

use crate::common::{
    compile, complete_prediction, corpus_test, disallowed_outcomes, instance_count, run_instances,
};

/// Returns the race-free tests of the folders, with their texts.
fn api_tests() -> Vec<(String, &'static str, Test)> {
    let folders = ["families/", "transfer/", "host/"];
    let own = litmus::corpus::tests()
        .into_iter()
        .filter(|entry| folders.iter().any(|own| entry.id.starts_with(own)));
    own.map(|entry| {
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        (entry.id, entry.text, test)
    })
    .collect()
}

/// Runs a test in all variants; `None` if it has no kernels.
fn run_all_mechanisms(
    device: &SimDevice,
    test: &Test,
    count: u64,
    seed: u64,
) -> Option<Result<Observation, RunError>> {
    let runnable = compile(device, test, RunVariant::default()).ok()?;
    Some(run_instances(device, &runnable, test, count, seed))
}

/// Runs every test, with its calls if it has any, and checks that no forbidden outcome occurs.
#[test]
fn calls_order_their_accesses() {
    let device = SimDevice::new(Fault::None);
    let (mut wrong, mut placeable_calls) = (Vec::new(), 0);
    for (id, _, test) in api_tests() {
        let calls = RunVariant { join: Some(Join::Calls), ..RunVariant::default() };
        let runnable = compile(&device, &test, calls);
        assert!(runnable.is_ok() || test.schedule().is_none(), "{id}: {runnable:?}");
        placeable_calls += u32::from(runnable.is_ok());
        let seen = run_all_mechanisms(&device, &test, instance_count(4_000), 7)
            .unwrap_or_else(|| panic!("{id} does not run"));
        let seen = seen.unwrap_or_else(|error| panic!("{id}: {error}"));
        let Some(prediction) = complete_prediction(&test) else { continue };
        wrong.extend(disallowed_outcomes(&test, &prediction, &seen));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(placeable_calls >= 70, "{placeable_calls}");
}

/// Calls that a test does not need, or whose removal no run detects, each with the reason.
const UNDETECTED_REMOVALS: [(&str, &str, &str); 3] = [
    (
        "families/MP+timeline.steps",
        "wait t 1",
        "two queues would signal one timeline without an order, which is invalid",
    ),
    ("families/PingPong+host.timeline", "wait t 1", "a queue and the host would signal without an order"),
    ("families/PingPong+host.timeline", "wait t 2", "a queue and the host would signal without an order"),
];

/// Memory is zeroed at the start of a dispatch only, so a round without that counts no instances.
#[test]
fn every_round_needs_zeroed_memory() {
    let device = SimDevice::new(Fault::None);
    let test = corpus_test("classes/MP+cbar.sc1");
    let rounds = |word: &str| {
        let runnable = compile(&device, &test, word.parse().unwrap()).unwrap();
        let seen = run_instances(&device, &runnable, &test, 20_000, 3).unwrap();
        (seen.batches.unwrap().total, seen.dispatches)
    };
    let (all, dispatches) = rounds("zeroed");
    assert_eq!(all, dispatches);
    let (all, dispatches) = rounds("");
    assert!(all > dispatches, "{all} rounds of {dispatches} dispatches");
}

/// The first words of calls that may be removed.
const REMOVABLE_CALLS: [&str; 8] =
    ["flush", "invalidate", "submit", "wait", "barrier", "await", "avdevice", "visdevice"];

/// Without one call, a test shows its forbidden outcome, if the model then allows that.
#[test]
fn each_removed_call_is_detected() {
    let device = SimDevice::new(Fault::None);
    let (mut seen, mut refused, mut needless, mut unseen) = (0, 0, Vec::new(), Vec::new());
    for (id, text, test) in api_tests() {
        let Some(judged) = complete_prediction(&test).filter(|judged| judged.race == Race::Free) else {
            continue;
        };
        for (line, row) in text.lines().enumerate().skip_while(|(_, row)| !row.starts_with("P0@")).skip(1) {
            for (column, cell) in row.trim_end_matches(';').split('|').enumerate() {
                let call = cell.trim();
                if !row.ends_with(';')
                    || !REMOVABLE_CALLS.iter().any(|word| call.split(['.', ' ']).next() == Some(*word))
                {
                    continue;
                }
                let without = |(number, own): (usize, &str)| {
                    let cells = own.split('|').enumerate().map(|(at, own)| {
                        if (number, at) == (line, column) {
                            if own.contains(';') { " ;".to_owned() } else { " ".repeat(own.len()) }
                        } else {
                            own.to_owned()
                        }
                    });
                    cells.collect::<Vec<_>>().join("|")
                };
                let less: Vec<String> = text.lines().enumerate().map(without).collect();
                // Removing a call can make a text invalid: a wait without its signal, or a transfer without
                // order.
                let Ok(less) = litmus::parse(&less.join("\n"), &id) else {
                    refused += 1;
                    continue;
                };
                let Some(prediction_without_call) = complete_prediction(&less) else { continue };
                let allowed = |of: &litmus::Prediction| {
                    let allowed = of.outcomes.iter().filter(|(_, says)| says.allowed);
                    allowed.map(|(outcome, _)| outcome.clone()).collect::<Vec<_>>()
                };
                let name = format!("{id} without `{call}`");
                if prediction_without_call.race == Race::Free
                    && allowed(&prediction_without_call) == allowed(&judged)
                {
                    needless.push(name);
                    continue;
                }
                let shows = [1, 2, 3].into_iter().any(|seed| {
                    let ran = run_all_mechanisms(&device, &less, instance_count(20_000), seed);
                    ran.is_some_and(|ran| {
                        ran.is_ok_and(|ran| !disallowed_outcomes(&test, &judged, &ran).is_empty())
                    })
                });
                if shows { seen += 1 } else { unseen.push(name) }
            }
        }
    }
    println!("{seen} seen, {refused} refused, needless: {needless:#?}, unseen: {unseen:#?}");
    let expected: Vec<String> =
        UNDETECTED_REMOVALS.iter().map(|(id, call, _)| format!("{id} without `{call}`")).collect();
    assert_eq!(unseen, expected);
    assert!(seen >= 30, "{seen}");
}
