//! The spin-loop reductions of the engine compared with the naive enumerator, which has none.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use litmus::{Prediction, Race, Test};
use model::{Model, PredictError, PredictOptions, naive, predict, predict_without_outcomes};
use proptest::prelude::Strategy;
use proptest::test_runner::{RngSeed, TestCaseError};

use crate::common::waiting;
use crate::oracle::{UNLIMITED, assert_agreement, check_cases, outcomes_where, shipped, soak_cases};

/// Maximum number of candidate executions of the naive enumerator for one test.
const MAX_EXECUTIONS: u64 = 1_000;

fn case_count_and_seed() -> (u32, RngSeed) {
    soak_cases(300, 27)
}

/// Compares the decision with and without the condition, and the prediction, with the oracle; `None` if the
/// test is too large for it.
fn compare(test: &Test, model: &Model) -> Result<Option<Race>, TestCaseError> {
    let failed = |error: PredictError| TestCaseError::fail(error.to_string());
    let Some(slow) = naive::enumerate(test, model, 1, MAX_EXECUTIONS).map_err(failed)? else {
        return Ok(None);
    };
    let unasked = Test { question: None, ..test.clone() };
    for test in [test, &unasked] {
        let decided = predict_without_outcomes(test, model, &UNLIMITED).map_err(failed)?;
        assert_agreement(test, &decided, &slow, false)?;
    }
    assert_agreement(test, &predict(test, model, &UNLIMITED).map_err(failed)?, &slow, false)?;
    Ok(Some(slow.race))
}

fn assert_agrees_on(tests: &impl Strategy<Value = Test>, name: &str, share: u32) {
    let model = shipped(name);
    let (cases, rng_seed) = case_count_and_seed();
    let cases = cases / share;
    let (free, racy) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases((cases, rng_seed), tests, |test| {
        let race = compare(&test, &model)?;
        let count = if race == Some(Race::Free) { &free } else { &racy };
        count.set(count.get() + u32::from(race.is_some()));
        Ok(())
    });
    println!("{name}: {} tests free of races, {} with some, of {cases}", free.get(), racy.get());
    assert!(free.get() > cases / 5 && racy.get() > cases / 5, "both must be compared often");
}

#[test]
fn threads_that_wait() {
    assert_agrees_on(&waiting::waiting_tests(), "vulkan", 2);
    assert_agrees_on(&waiting::waiting_tests(), "vulkan-2019", 4);
}

/// Compares the answers for programs that the engine reduces with those for equivalent programs whose loops it unrolls,
/// each with a loop bound. Returns how many of the compared programs race, and how many do not.
fn compare_with_unrolled<S: Strategy, A: PartialEq + std::fmt::Debug>(
    share: u32,
    parts: &S,
    programs: impl Fn(S::Value) -> [(Test, u32); 2],
    answer: impl Fn(&Test, &PredictOptions) -> (Prediction, A),
) -> (u32, u32) {
    let (cases, rng_seed) = case_count_and_seed();
    let (racy, free) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases((cases / share, rng_seed), parts, |parts| {
        let [reduced, unrolled] = programs(parts);
        let answer_within =
            |(test, unroll): &(Test, u32)| answer(test, &PredictOptions { unroll: *unroll, ..UNLIMITED });
        let (prediction, found) = answer_within(&reduced);
        // If the engine does not reduce the loop, the loop bound applies.
        if prediction.truncated_runs > 0 {
            return Ok(());
        }
        let count = if prediction.race == Race::Racy { &racy } else { &free };
        count.set(count.get() + 1);
        let (other, expected) = answer_within(&unrolled);
        let races = [&prediction, &other].map(|prediction| prediction.race == Race::Racy);
        if races[0] != races[1] || found != expected {
            let text = litmus::print(&reduced.0);
            return Err(TestCaseError::fail(format!("{races:?}: {found:?}, not {expected:?}\n{text}")));
        }
        Ok(())
    });
    println!("{} tests with races and {} without", racy.get(), free.get());
    (racy.get(), free.get())
}

/// The answers to the question.
fn decide(test: &Test, options: &PredictOptions) -> (Prediction, [bool; 2]) {
    let prediction = predict_without_outcomes(test, &shipped("vulkan"), options).unwrap();
    let answers = [prediction.can_meet_condition, prediction.can_miss_condition];
    (prediction, answers.map(|answer| answer == Some(true)))
}

fn pick(of: &'static [&'static str]) -> impl Strategy<Value = &'static str> + Clone {
    proptest::sample::select(of)
}

/// Returns the program with these names and columns, in one workgroup or in one each.
fn program(names: &str, columns: &[String], together: usize, end: &str) -> Test {
    let table = waiting::table(columns, |thread| thread * together);
    let text = format!("VULKAN waiting\n{{ {names} }}\n{table}{end}");
    litmus::parse(&text, "waiting").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
}

/// A loop that writes back the value that it read has the same outcomes as its first three iterations.
///
/// The engine recognizes this only for a constant operand, so it unrolls the program with a register.
#[test]
fn loops_that_put_a_value_back() {
    let take = || {
        pick(&[
            "rmw.atom.acq.dv.sc0.semsc0.semvis r0, l, ONE; bne r0, 0, LC00",
            "rmw.atom.dv.sc0 r0, l, ONE; bne r0, 0, LC00",
            "rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis.or r0, l, ONE; beq r0, 1, LC00",
            "rmw.atom.acq.wg.sc0.semsc0 r0, l, ONE; bne r0, 0, LC00",
            "rmw.atom.acq.dv.sc0.semsc0 r0, l, ONE; ld.atom.dv.sc0 r1, f; bne r0, 0, LC00",
        ])
    };
    let inside =
        || pick(&["ld.sc0 r2, x; st.sc0 x, 1", "st.sc0 x, 2", "ld.sc0 r2, x", "st.atom.dv.sc0 f, 1"]);
    let leave =
        || pick(&["st.atom.rel.dv.sc0.semsc0.semav l, 0", "st.atom.dv.sc0 l, 0", "", "st.atom.dv.sc0 l, 2"]);
    let onlooker =
        pick(&["ld.atom.acq.dv.sc0.semsc0 r0, l; ld.sc0 r1, x", "st.atom.dv.sc0 l, 1", "ld.sc0 r1, x"]);
    let tests = ((take(), inside(), leave()), (take(), inside(), leave()), onlooker, 0..2usize);
    let programs = |(one, other, onlooker, together): ((_, _, _), (_, _, _), Text, usize)| {
        [("1", 1), ("r8", 3)].map(|(operand, unroll)| {
            let column = |(take, inside, leave): (&str, &str, &str)| {
                format!("LC00:; {take}; {inside}; {leave}").replace("ONE", operand)
            };
            let columns = [column(one), column(other), onlooker.to_owned()];
            let names = "l = 0; x = 0; f = 0; P0:r8 = 1; P1:r8 = 1;";
            (program(names, &columns, together, ""), unroll)
        })
    };
    let (racy, free) = compare_with_unrolled(10, &tests, programs, |test, options| {
        let prediction = predict(test, &shipped("vulkan"), options).unwrap();
        let allowed = outcomes_where(&prediction, |predicted| predicted.allowed);
        (prediction, allowed)
    });
    assert!(racy + free > case_count_and_seed().0 / 30, "{} were reduced", racy + free);
}

type Text = &'static str;
/// The parts of a program of [`turns_that_may_race_or_store_a_final_value`].
type TurnParts = (Text, (Text, Text), Text, Text, Text, Text, Text, usize);

/// A loop whose turns leave the registers as they were has the same races and answers as its first three turns.
///
/// The engine recognizes this only if no register counts the turns.
#[test]
fn turns_that_may_race_or_store_a_final_value() {
    let poll = pick(&["ld.atom.acq.dv.sc0.semsc0.semvis r0, f", "ld.atom.dv.sc0 r0, f", "ld.sc0 r0, f"]);
    let turn = || {
        pick(&[
            "ld.sc0 r1, x",
            "ld.atom.dv.sc0 r1, x",
            "st.sc0 o, 1",
            "st.sc0 o, r0",
            "st.atom.dv.sc0 o, 2",
            "rmw.atom.acq.dv.sc0.semsc0.semvis.cas r1, x, 5, 6",
            "membar.acq.dv.semsc0.semvis",
            "",
        ])
    };
    let suffix = pick(&[
        "st.atom.dv.sc0 y, 1",
        "st.atom.rel.dv.sc0.semsc0.semav y, 1",
        "st.sc0 o, 3; st.atom.dv.sc0 y, 1",
        "st.atom.rel.dv.sc0.semsc0.semav y, 1; st.sc0 o, 3",
    ]);
    let prefix = pick(&[
        "st.atom.dv.sc0 f, 1",
        "st.atom.rel.dv.sc0.semsc0.semav f, 1",
        "st.sc0 x, 2; st.atom.rel.dv.sc0.semsc0.semav f, 1",
        "st.sc0 f, 1",
    ]);
    let wait = pick(&[
        "LC20:; ld.atom.dv.sc0 r0, y; bne r0, 1, LC20",
        "LC20:; ld.atom.acq.dv.sc0.semsc0.semvis r0, y; bne r0, 1, LC20",
        "ld.atom.acq.dv.sc0.semsc0.semvis r0, y",
    ]);
    let end = pick(&["st.sc0 x, 1", "ld.sc0 r2, x", "st.sc0 o, 7", "st.atom.dv.sc0 o, 7", ""]);
    let condition = pick(&["x == 1", "o == 1", "o == 0 /\\ P1:r0 == 1", "o == 7", "P1:r0 == 0"]);
    let tests = (poll, (turn(), turn()), suffix, prefix, wait, end, condition, 0..2usize);
    let programs = |(poll, turn, after, before, wait, end, asked, together): TurnParts| {
        [("", "", 1), ("add r9, r9, 1", "P0:r9 == 9 \\/ ", 3)].map(|(count, also, unroll)| {
            let turn = format!("{}; {}; {count}", turn.0, turn.1);
            let looping = format!("LC10:; {poll}; beq r0, 1, LC11; {turn}; goto LC10; LC11:; {after}");
            let columns = [looping, format!("{before}; {wait}; {end}")];
            let names = "x = 0; y = 0; f = 0; o = 0;";
            (program(names, &columns, together, &format!("exists ({also}({asked}))")), unroll)
        })
    };
    let (racy, free) = compare_with_unrolled(3, &tests, programs, decide);
    let (cases, _) = case_count_and_seed();
    assert!(racy > cases / 30 && free > cases / 60, "{racy} with races and {free} without were compared");
}

/// The parts of a program of [`retries_that_store_or_carry_a_value`].
type RetryParts = (Text, Text, Text, Text, Text, Text, Text, usize);

/// Retry loops that store before each attempt, or carry a value to the next one, have the same races and answers
/// as their first five turns.
///
/// The engine recognizes this only if no register that counts the turns has an effect. Some loops end after a few
/// attempts.
#[test]
fn retries_that_store_or_carry_a_value() {
    // The first column before the loop, the second in it.
    let attempt = pick(&[
        "| ld.atom.dv.sc0 r0, t; STORE; rmw.atom.rel.dv.sc0.semsc0.semav.cas r1, t, r0, 9; AGAIN; bne r1, r0, LC10",
        "| ld.atom.acq.dv.sc0.semsc0.semvis r0, t; STORE; rmw.atom.dv.sc0.cas r1, t, r0, 9; AGAIN; bne r1, r0, LC10",
        "ld.atom.dv.sc0 r0, t | add r3, r0, 0; STORE; rmw.atom.dv.sc0.cas r0, t, r3, 9; AGAIN; bne r0, r3, LC10",
        "ld.atom.acq.dv.sc0.semsc0.semvis r0, t | add r3, r0, 0; STORE; ld.atom.dv.sc0 r0, t; AGAIN; bne r0, r3, LC10",
        "ld.atom.dv.sc0 r0, t | add r3, r0, 0; STORE; ld.atom.acq.dv.sc0.semsc0.semvis r0, t; AGAIN; blt r3, r0, LC10",
        "ld.atom.dv.sc0 r0, t | add r3, r0, 0; add r4, r3, 1; STORE; ld.atom.dv.sc0 r0, t; AGAIN; beq r0, r4, LC10",
        "ld.atom.dv.sc0 r0, t | add r3, r0, 0; STORE; ld.atom.dv.sc0 r0, t; AGAIN; beq r0, r3, LC11; bne r3, 2, LC10",
    ]);
    let tries = pick(&[
        "",
        "",
        "add r6, r6, r6; add r6, r6, 1",
        "add r6, r6, 1; beq r6, 2, LC11",
        "add r6, r6, 1; beq r6, 3, LC11",
    ]);
    let store = pick(&["st.atom.dv.sc0 n, r0", "st.atom.rel.dv.sc0.semsc0.semav n, r0", "st.sc0 n, r0", ""]);
    let suffix = pick(&["st.atom.rel.dv.sc0.semsc0.semav y, 1", "add r5, r0, 0", "st.sc0 x, r0"]);
    let writer = pick(&[
        "st.atom.dv.sc0 t, 1; st.atom.dv.sc0 t, 2",
        "st.atom.dv.sc0 t, 1; st.atom.dv.sc0 t, 0",
        "rmw.atom.rel.dv.sc0.semsc0.semav.add r0, t, 1",
        "st.sc0 x, 3; st.atom.rel.dv.sc0.semsc0.semav t, 1",
    ]);
    let reader = pick(&[
        "ld.atom.acq.dv.sc0.semsc0.semvis r0, n; ld.atom.dv.sc0 r1, n",
        "ld.atom.acq.dv.sc0.semsc0.semvis r0, y; ld.sc0 r1, n",
        "ld.atom.acq.dv.sc0.semsc0.semvis r0, n; ld.sc0 r1, x",
        "LC20:; ld.atom.acq.dv.sc0.semsc0.semvis r0, t; bne r0, 9, LC20; ld.sc0 r1, n",
        "rmw.atom.dv.sc0.add r0, n, 4; add r1, r0, 0",
        "st.atom.dv.sc0 n, 7; add r1, r0, 0; add r0, r0, 0",
    ]);
    let condition = pick(&[
        "P2:r0 == 1 /\\ P2:r1 == 2",
        "P2:r0 == 0 /\\ P2:r1 == 1",
        "P2:r0 == 1",
        "P2:r1 == 0",
        "n == 1",
        "P0:r0 == 2 /\\ P2:r0 == 1",
        "P0:r0 == 0 /\\ t == 0",
    ]);
    let tests = (attempt, tries, store, suffix, writer, reader, condition, 0..2usize);
    let programs = |(attempt, tries, store, suffix, writer, reader, condition, together): RetryParts| {
        let reduced_unroll = if tries.contains("beq") { 4 } else { 2 };
        [("", reduced_unroll), ("P0:r9 == 19 \\/ ", 5)].map(|(also, unroll)| {
            let again = format!("add r9, r9, 1; {tries}");
            let attempt = attempt.replace("STORE", store).replace("AGAIN", &again);
            let (before, turn) = attempt.split_once('|').expect("two parts");
            let columns =
                [format!("{before}; LC10:; {turn}; LC11:; {suffix}"), writer.to_owned(), reader.to_owned()];
            let names = "x = 0; y = 0; t = 0; n = 0;";
            (program(names, &columns, together, &format!("exists ({also}({condition}))")), unroll)
        })
    };
    let (racy, free) = compare_with_unrolled(3, &tests, programs, decide);
    let (cases, _) = case_count_and_seed();
    assert!(racy > cases / 30 && free > cases / 30, "{racy} with races and {free} without were compared");
}
