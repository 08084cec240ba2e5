//! Tests of the bounds: sizes, time, loops, and control barriers that block.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crate::oracle::{UNLIMITED, shipped};
use std::fmt::Write;

use litmus::{Observable, Outcome, Prediction, Race, Test, ThreadId, Value};
use model::{
    Budget, ExplainOptions, MAX_EVENTS, MAX_THREADS, PredictError, PredictOptions, complete_prediction,
    explain_outcome, naive, predict, predict_with_growing_bound, predict_without_outcomes,
};

fn parse_test(text: &str) -> Test {
    litmus::parse(text, "test").unwrap()
}

/// Returns the allowed outcomes as lists of numbers, checked against the naive enumerator.
fn allowed_outcomes(test: &Test, name: &str, unroll: u32) -> Vec<Vec<u64>> {
    let model = shipped(name);
    let prediction = predict(test, &model, &PredictOptions { unroll, ..UNLIMITED }).unwrap();
    let oracle = naive::enumerate(test, &model, unroll, 1_000_000).unwrap().expect("a small test");
    let kept = prediction.outcomes.iter().filter(|(_, says)| says.allowed).map(|(outcome, _)| outcome);
    let outcomes: Vec<&Outcome> = kept.collect();
    assert_eq!(outcomes.len(), oracle.allowed.len());
    assert!(outcomes.iter().all(|outcome| oracle.allowed.contains(*outcome)));
    outcomes.into_iter().map(|outcome| outcome.0.iter().map(|value| value.0).collect()).collect()
}

/// Returns a test with `threads` threads of `each` stores.
fn test_of_stores(threads: usize, each: usize) -> Test {
    let header: Vec<String> = (0..threads).map(|t| format!("P{t}@sg 0, wg {t}, qf 0")).collect();
    let row = vec!["st.atom.dv.sc0 x, 1"; threads].join(" | ");
    let mut text = format!("VULKAN stores\n{{ x = 0; }}\n{} ;\n", header.join(" | "));
    for _ in 0..each {
        writeln!(text, "{row} ;").unwrap();
    }
    parse_test(&text)
}

#[test]
fn sizes_past_the_bounds_are_refused_with_the_bound() {
    let vulkan = shipped("vulkan");
    // The parser already refuses a text with more threads.
    let mut wide = test_of_stores(MAX_THREADS, 1);
    wide.threads.extend(wide.threads.first().cloned());
    let error = predict(&wide, &vulkan, &UNLIMITED).unwrap_err();
    assert!(matches!(error, PredictError::TooManyThreads { threads: 65, bound: 64 }), "{error:?}");
    assert_eq!(error.to_string(), "the test has 65 threads; at most 64 are supported");
    // With the initial write there is one event too many.
    let error = predict(&test_of_stores(1, MAX_EVENTS), &vulkan, &UNLIMITED).unwrap_err();
    assert!(matches!(error, PredictError::TooManyEvents { events: 257, bound: 256 }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the test has 257 events, initial writes included; at most 256 are supported"
    );
    let largest = predict(&test_of_stores(1, MAX_EVENTS - 1), &vulkan, &UNLIMITED).unwrap();
    assert_eq!(largest.race, Race::Free);
}

#[test]
fn many_barriers_with_a_quorum_are_refused() {
    let steps_for = |threads: usize| {
        let heads: Vec<String> = (0..threads).map(|id| format!("P{id}@sg {id}, wg 0, qf 0")).collect();
        let barriers = vec!["cbar.acq_rel.wg.semsc0 1, 2, 20"; threads].join(" | ");
        let text = format!("VULKAN quorum\n{{ x = 0; }}\n{} ;\n{barriers} ;\n", heads.join(" | "));
        let test = litmus::parse(&text, "quorum").unwrap();
        predict(&test, &shipped("vulkan"), &UNLIMITED).map(|prediction| prediction.race)
    };
    assert_eq!(steps_for(12).unwrap(), Race::Free);
    assert_eq!(
        steps_for(21).unwrap_err().to_string(),
        "not available: more than 20 named barriers with a quorum"
    );
}

/// Many synchronizing accesses, for a long search.
fn long_test() -> Test {
    let mut text = String::from("VULKAN long\n{ x = 0; y = 0; }\n");
    text += "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 | P3@sg 0, wg 3, qf 0 ;\n";
    for row in 0..3 {
        let cell = |thread: usize, location: char| {
            let value = 4 * row + thread + 1;
            format!("rmw.atom.acq_rel.dv.sc0.semsc0.add r{row}, {location}, {value}")
        };
        let cells = [cell(0, 'x'), cell(1, 'y'), cell(2, 'x'), cell(3, 'y')];
        writeln!(text, "{} ;", cells.join(" | ")).unwrap();
    }
    text += "exists (P0:r0 == 77 /\\ P1:r0 == 78)";
    parse_test(&text)
}

#[test]
fn without_time_every_answer_is_unknown() {
    let options = PredictOptions { budget: Budget::from_steps(0), unroll: 1 };
    let prediction = predict(&long_test(), &shipped("vulkan"), &options).unwrap();
    assert_eq!(prediction.race, Race::Unknown);
    assert_eq!(
        (prediction.can_meet_condition, prediction.can_miss_condition, prediction.complete),
        (None, None, false)
    );
    let test = long_test();
    let vulkan = shipped("vulkan");
    let options = ExplainOptions {
        verdict_budget: Budget::from_steps(0),
        search_budget: Budget::from_steps(0),
        ..ExplainOptions::default()
    };
    let explanation = explain_outcome(&test, &vulkan, &options).unwrap();
    assert_eq!(explanation.answer, model::ExplanationAnswer::Unknown);
}

/// Six threads with eight accesses and a condition about a third of them. Explicit search takes hundreds of
/// thousands of steps.
#[test]
fn questions_in_large_spaces_are_answered_in_few_steps() {
    let test = parse_test(include_str!("large/six-of-eight.litmus"));
    let options = PredictOptions { budget: Budget::from_steps(150_000), unroll: 1 };
    let prediction = predict(&test, &shipped("vulkan"), &options).unwrap();
    assert_eq!(
        (prediction.race, prediction.can_meet_condition, prediction.can_miss_condition),
        (Race::Free, Some(false), Some(true))
    );
}

/// Two threads of 64 stores to one location, whose order two readers observe.
#[test]
fn questions_about_many_stores_are_answered_in_few_steps() {
    let mut text = String::from("VULKAN stores\n{ x = 0; }\n");
    text += "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 | P3@sg 0, wg 3, qf 0 ;\n";
    for row in 0..64 {
        let load = if row < 2 { format!("ld.atom.dv.sc0 r{row}, x") } else { String::new() };
        let store = |thread: usize| format!("st.atom.dv.sc0 x, {}", 2 * row + thread);
        writeln!(text, "{} | {} | {load} | {load} ;", store(1), store(2)).unwrap();
    }
    text += "exists (P2:r0 == 63 /\\ P2:r1 == 64 /\\ P3:r0 == 64 /\\ P3:r1 == 63)";
    let options = PredictOptions { budget: Budget::from_steps(200_000), unroll: 1 };
    let prediction = predict_without_outcomes(&parse_test(&text), &shipped("vulkan"), &options).unwrap();
    assert_eq!((prediction.race, prediction.can_meet_condition), (Race::Free, Some(false)));
}

/// Threads that increment counters, take tickets and wait for each other: `NAME.free.litmus` or
/// `NAME.racy.litmus`, with a sufficient number of steps.
#[test]
fn threads_that_count_are_answered_in_few_steps() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/large/counting");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let race = if name.ends_with(".free.litmus") { Race::Free } else { Race::Racy };
        let test = parse_test(&std::fs::read_to_string(&file).unwrap());
        let options = PredictOptions { budget: Budget::from_steps(100_000), unroll: 1 };
        let prediction = predict_without_outcomes(&test, &shipped("vulkan"), &options).unwrap();
        assert_eq!(prediction.race, race, "{name}");
        assert!(prediction.can_meet_condition.is_some() && prediction.can_miss_condition.is_some(), "{name}");
        // Without a condition, all threads that left their loops are observed, including races.
        let unasked = Test { question: None, ..test };
        assert_eq!(
            predict_without_outcomes(&unasked, &shipped("vulkan"), &options).unwrap().race,
            race,
            "{name}, unasked"
        );
    }
}

/// One thread spins on a flag that another sets.
const SPIN: &str = "VULKAN spin
{ f = 0; }
P0@sg 0, wg 0, qf 0  | P1@sg 0, wg 1, qf 0  ;
st.atom.dv.sc0 f, 1  | LC00:                ;
                     | add r1, r1, 1        ;
                     | ld.atom.dv.sc0 r0, f ;
                     | beq r0, 0, LC00      ;
exists (P1:r0 == 1)";

#[test]
fn a_loop_is_run_as_often_as_it_may_be() {
    let test = parse_test(SPIN);
    // Outcomes are the number of iterations and r0. A thread that is still in its loop has no outcome.
    assert_eq!(allowed_outcomes(&test, "vulkan", 1), [[1, 1]]);
    assert_eq!(allowed_outcomes(&test, "vulkan", 2), [[1, 1], [2, 1]]);
    assert_eq!(allowed_outcomes(&test, "dartagnan", 4), [[1, 1], [2, 1], [3, 1], [4, 1]]);
    let prediction = predict(&test, &shipped("vulkan"), &UNLIMITED).unwrap();
    // The counter makes every iteration different, so it is unknown whether another iteration would violate
    // the condition.
    assert_eq!(
        (prediction.can_meet_condition, prediction.can_miss_condition, prediction.truncated_runs),
        (Some(true), None, 1)
    );
}

#[test]
fn a_spin_loop_is_not_truncated() {
    let test = parse_test(&SPIN.replace("add r1, r1, 1        ", "                     "));
    for bound in [1, 2, 4] {
        let options = PredictOptions { unroll: bound, ..UNLIMITED };
        let prediction = predict(&test, &shipped("vulkan"), &options).unwrap();
        assert_eq!((prediction.race, prediction.truncated_runs), (litmus::Race::Free, 0));
        assert_eq!((prediction.can_meet_condition, prediction.can_miss_condition), (Some(true), Some(false)));
        assert_eq!(allowed_outcomes(&test, "vulkan", bound), [[1]]);
    }
}

/// In this cycle, a value would have to equal itself plus one.
#[test]
fn a_dependency_cycle_without_a_solution_has_no_execution() {
    let test = parse_test(
        "VULKAN circle
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0    | P1@sg 0, wg 1, qf 0    ;
ld.atom.dv.sc0 r0, x   | ld.atom.dv.sc0 r1, y   ;
st.atom.dv.sc0 y, r0   | add r2, r1, 1          ;
                       | st.atom.dv.sc0 x, r2   ;
exists (P0:r0 == 1 /\\ P1:r1 == 1)",
    );
    assert_eq!(allowed_outcomes(&test, "vulkan", 1), [[0, 0, 1], [1, 0, 1]]);
}

/// A race after a loop that ends in its second iteration.
const LATE: &str = "VULKAN late
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0        | P1@sg 0, wg 1, qf 0 ;
LC00:                      | st.nonpriv.sc0 y, 2 ;
rmw.atom.dv.sc0.add r0, x, 1 |                   ;
blt r0, 1, LC00            |                     ;
st.nonpriv.sc0 y, 1        |                     ;
exists (y == 1)";

#[test]
fn truncated_runs_are_never_race_free() {
    let test = parse_test(LATE);
    let vulkan = shipped("vulkan");
    let predict_at = |unroll| predict(&test, &vulkan, &PredictOptions { unroll, ..UNLIMITED }).unwrap();
    let once = predict_at(1);
    assert_eq!((once.race, once.can_meet_condition, once.complete), (litmus::Race::Unknown, None, false));
    assert_eq!((once.truncated_runs, once.runs), (1, 1));
    let bounded = ExplainOptions { unroll: Some(1), ..ExplainOptions::default() };
    assert_eq!(explain_outcome(&test, &vulkan, &bounded).unwrap().answer, model::ExplanationAnswer::Unknown);
    let late = Outcome(vec![Value(1), Value(1)]);
    assert_eq!(complete_prediction(&once, &test, &vulkan, [&late], &UNLIMITED).unwrap(), None);
    let twice = predict_at(2);
    assert_eq!(
        (twice.race, twice.can_meet_condition, twice.truncated_runs),
        (litmus::Race::Racy, Some(true), 0)
    );
    let growing = predict_with_growing_bound(&test, &vulkan, &UNLIMITED).unwrap();
    assert_eq!((growing.race, growing.bound, growing.truncated_runs), (litmus::Race::Racy, 2, 0));
}

/// P1 joins the barrier of P0 only if it reads 1.
fn conditional_barrier_test(left: &str, right: &str) -> Test {
    parse_test(&format!(
        "VULKAN barriers
{{ x = 0; }}
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;
{left} ;
{right} ;
exists (x == 0)"
    ))
}

#[test]
fn a_barrier_without_all_participants_blocks() {
    // The second instance of barrier 1 is in a branch that P1 does not take.
    let test = parse_test(
        "VULKAN blocked
{ x = 0; }
P0@sg 0, wg 0, qf 0  | P1@sg 0, wg 0, qf 0 ;
cbar.wg 1            | goto LC00           ;
ld.atom.wg.sc0 r0, x | cbar.wg 1           ;
                     | LC00:               ;
forall (P0:r0 == 5)",
    );
    assert_eq!(allowed_outcomes(&test, "vulkan", 1), Vec::<Vec<u64>>::new());
    let prediction = predict(&test, &shipped("vulkan"), &UNLIMITED).unwrap();
    assert_eq!((prediction.can_meet_condition, prediction.can_miss_condition), (Some(false), Some(false)));
    // In Khronos' model, barriers do not block.
    assert_eq!(allowed_outcomes(&test, "khronos-alloy", 1), [[0]]);
}

#[test]
fn barriers_in_crossed_order_block_each_other() {
    let test = conditional_barrier_test("cbar.wg 1 | cbar.wg 2", "cbar.wg 2 | cbar.wg 1");
    assert_eq!(predict(&test, &shipped("dartagnan"), &UNLIMITED).unwrap().can_meet_condition, Some(false));
    let test = conditional_barrier_test("cbar.wg 1 | cbar.wg 1", "cbar.wg 2 | cbar.wg 2");
    assert_eq!(predict(&test, &shipped("dartagnan"), &UNLIMITED).unwrap().can_meet_condition, Some(true));
}

#[test]
fn the_text_of_a_barriers_id_names_it() {
    let same = conditional_barrier_test("cbar.wg 0 | cbar.wg 0", "ld.atom.wg.sc0 r0, x | ");
    assert_eq!(predict(&same, &shipped("vulkan"), &UNLIMITED).unwrap().can_meet_condition, Some(true));
    // `0` and `00` are two barriers with one participant each, which does not wait.
    let two = conditional_barrier_test("cbar.wg 0 | cbar.wg 00", "ld.atom.wg.sc0 r0, x | ");
    assert_eq!(predict(&two, &shipped("vulkan"), &UNLIMITED).unwrap().can_meet_condition, Some(true));
}

/// Many reads of one location that may return different values: more outcomes than are listed.
fn test_with_many_outcomes() -> Test {
    let mut text = String::from("VULKAN many\n{ x = 0; y = 0; }\n");
    let header: Vec<String> = (0..6).map(|t| format!("P{t}@sg 0, wg {t}, qf 0")).collect();
    writeln!(text, "{} ;", header.join(" | ")).unwrap();
    for row in 0..3 {
        let cells: Vec<String> = (0..6)
            .map(|t| match t {
                0 => format!("st.atom.dv.sc0 x, {}", row + 1),
                1 => format!("st.atom.dv.sc0 y, {}", row + 1),
                t => format!("ld.atom.dv.sc0 r{row}, {}", if t % 2 == 0 { 'x' } else { 'y' }),
            })
            .collect();
        writeln!(text, "{} ;", cells.join(" | ")).unwrap();
    }
    text += "exists (P2:r0 == 3 /\\ P2:r1 == 1)";
    parse_test(&text)
}

#[test]
fn outcomes_that_are_too_many_to_list_are_judged_one_by_one() {
    let (test, vulkan) = (test_with_many_outcomes(), shipped("vulkan"));
    let prediction = predict(&test, &vulkan, &UNLIMITED).unwrap();
    assert!(!prediction.complete && prediction.outcomes.is_empty());
    assert_eq!(
        (prediction.race, prediction.can_meet_condition, prediction.can_miss_condition),
        (Race::Free, Some(false), Some(true))
    );
    let outcome = |first: [u64; 3]| {
        let mut values = vec![Value(0); 12];
        values[..3].copy_from_slice(&first.map(Value));
        Outcome(values)
    };
    let (in_order, torn, backwards) = (outcome([0, 2, 3]), outcome([0, 7, 0]), outcome([3, 1, 3]));
    let observed = [&in_order, &torn, &backwards];
    let settled: Prediction =
        complete_prediction(&prediction, &test, &vulkan, observed, &UNLIMITED).unwrap().expect("in time");
    assert!(settled.complete);
    let outcome_verdict = |outcome| settled.outcomes[outcome];
    assert!(
        outcome_verdict(&in_order).allowed
            && !outcome_verdict(&in_order).weak
            && !outcome_verdict(&in_order).serial
    );
    assert!(!outcome_verdict(&torn).allowed && outcome_verdict(&torn).weak);
    assert!(!outcome_verdict(&backwards).allowed && outcome_verdict(&backwards).weak);
    let none = PredictOptions { budget: Budget::from_steps(0), unroll: 1 };
    assert_eq!(complete_prediction(&prediction, &test, &vulkan, observed, &none).unwrap(), None);
}

/// The marks of an outcome need no search of the 2^30 orders of equal stores.
#[test]
fn equal_stores_of_many_threads_are_not_interleaved() {
    let vulkan = shipped("vulkan");
    let mut test = test_of_stores(32, 1);
    let buffering = parse_test(
        "VULKAN SB\n{ x = 0; y = 0; z = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\nst.atom.dv.sc0 y, 1 | st.atom.dv.sc0 z, 1 ;\n\
         ld.atom.dv.sc0 r0, z | ld.atom.dv.sc0 r0, y ;\nexists (P0:r0 == 0 /\\ P1:r0 == 0)",
    );
    let others = test.threads.split_off(2);
    test.threads = buffering.threads.iter().cloned().chain(others).collect();
    test.locations = buffering.locations;
    test.question = buffering.question;
    let mut prediction = predict(&test, &vulkan, &UNLIMITED).unwrap();
    prediction.complete = false;
    prediction.outcomes.clear();
    let outcome = |read: u64| {
        let value = |one: &Observable| match one {
            Observable::Register(ThreadId(0), _) => 0,
            Observable::Register(_, _) => read,
            Observable::Location(_, _) => 1,
        };
        Outcome(prediction.observables.iter().map(|one| Value(value(one))).collect())
    };
    let (serial, weak) = (outcome(1), outcome(0));
    let settled = complete_prediction(&prediction, &test, &vulkan, [&serial, &weak], &UNLIMITED)
        .unwrap()
        .expect("in time");
    let outcome_flags = |outcome| (settled.outcomes[outcome].weak, settled.outcomes[outcome].serial);
    assert_eq!((outcome_flags(&serial), outcome_flags(&weak)), ((false, true), (true, false)));
}
