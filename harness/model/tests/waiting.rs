//! The spin-loop reductions of the engine compared with the naive enumerator, which has none.

use litmus::{Race, Test};
use model::{Budget, Model, PredictError, PredictOptions, naive, predict, predict_without_outcomes};
use proptest::prelude::Strategy;
use proptest::test_runner::{RngSeed, TestCaseError};

use crate::common::waiting;
use crate::oracle::{assert_agreement, check_cases, shipped, soak_cases};

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
    let options = PredictOptions { budget: Budget::UNLIMITED, unroll: 1 };
    let unasked = Test { question: None, ..test.clone() };
    for test in [test, &unasked] {
        let decided = predict_without_outcomes(test, model, &options).map_err(failed)?;
        assert_agreement(test, &decided, &slow, false)?;
    }
    assert_agreement(test, &predict(test, model, &options).map_err(failed)?, &slow, false)?;
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

/// A loop that writes back the value that it read has the same outcomes as its first three iterations.
///
/// The engine recognizes this only for a constant operand, so it unrolls the program with a register.
#[test]
fn loops_that_put_a_value_back() {
    let model = shipped("vulkan");
    let pick = |of: &'static [&'static str]| proptest::sample::select(of);
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
    let (cases, rng_seed) = case_count_and_seed();
    let share = (cases / 10, rng_seed);
    let compared = std::cell::Cell::new(0u32);
    check_cases(share, &tests, |(one, other, onlooker, together)| {
        let program = |operand: &str| {
            let column = |(take, inside, leave): (&str, &str, &str)| {
                format!("LC00:; {take}; {inside}; {leave}").replace("ONE", operand)
            };
            let columns = [column(one), column(other), onlooker.to_owned()];
            let table = waiting::table(&columns, |thread| thread * together);
            let text = format!("VULKAN back\n{{ l = 0; x = 0; f = 0; P0:r8 = 1; P1:r8 = 1; }}\n{table}");
            litmus::parse(&text, "back").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
        };
        let answer_with = |operand, unroll| {
            let options = PredictOptions { budget: Budget::UNLIMITED, unroll };
            let prediction = predict(&program(operand), &model, &options).unwrap();
            let allowed = prediction.outcomes.iter().filter(|(_, outcome)| outcome.allowed);
            let allowed: std::collections::BTreeSet<_> =
                allowed.map(|(outcome, _)| outcome.clone()).collect();
            (prediction.race == Race::Racy, allowed, prediction.truncated_runs)
        };
        let (reduced, unrolled) = (answer_with("1", 1), answer_with("r8", 3));
        // If the loop writes back another value, the loop bound applies.
        if reduced.2 > 0 {
            return Ok(());
        }
        compared.set(compared.get() + 1);
        if (reduced.0, &reduced.1) != (unrolled.0, &unrolled.1) {
            let text = litmus::print(&program("1"));
            return Err(TestCaseError::fail(format!("{reduced:?}, not {unrolled:?}\n{text}")));
        }
        Ok(())
    });
    assert!(compared.get() > cases / 30, "{} were reduced", compared.get());
}

/// A loop whose turns leave the registers as they were has the same races and answers as its first three turns.
///
/// The engine recognizes this only if no register counts the turns.
#[test]
fn turns_that_may_race_or_store_a_final_value() {
    let model = shipped("vulkan");
    let pick = |of: &'static [&'static str]| proptest::sample::select(of);
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
    let (cases, rng_seed) = case_count_and_seed();
    let share = (cases / 3, rng_seed);
    let (racy, free) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases(share, &tests, |(poll, turn, after, before, wait, end, asked, together)| {
        let program = |count: &str, also: &str| {
            let turn = format!("{}; {}; {count}", turn.0, turn.1);
            let looping = format!("LC10:; {poll}; beq r0, 1, LC11; {turn}; goto LC10; LC11:; {after}");
            let columns = [looping, format!("{before}; {wait}; {end}")];
            let table = waiting::table(&columns, |thread| thread * together);
            let names = "x = 0; y = 0; f = 0; o = 0;";
            let text = format!("VULKAN turns\n{{ {names} }}\n{table}exists ({also}({asked}))");
            litmus::parse(&text, "turns").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
        };
        let decided = |test: &Test, unroll| {
            let prediction =
                predict_without_outcomes(test, &model, &PredictOptions { budget: Budget::UNLIMITED, unroll })
                    .unwrap();
            let answers = (
                prediction.race == Race::Racy,
                prediction.can_meet_condition == Some(true),
                prediction.can_miss_condition == Some(true),
            );
            (answers, prediction.truncated_runs)
        };
        let reduced = program("", "");
        let (answers, cut) = decided(&reduced, 1);
        if cut > 0 {
            return Ok(());
        }
        let count = if answers.0 { &racy } else { &free };
        count.set(count.get() + 1);
        let (counted, _) = decided(&program("add r9, r9, 1", "P0:r9 == 9 \\/ "), 3);
        if answers != counted {
            let text = litmus::print(&reduced);
            return Err(TestCaseError::fail(format!("{answers:?}, not {counted:?}\n{text}")));
        }
        Ok(())
    });
    let (racy, free) = (racy.get(), free.get());
    assert!(racy > cases / 30 && free > cases / 60, "{racy} with races and {free} without were compared");
}

/// Retry loops that store before each attempt, or carry a value to the next one, have the same races and answers
/// as their first five turns.
///
/// The engine recognizes this only if no register that counts the turns has an effect. Some loops end after a few
/// attempts.
#[test]
fn retries_that_store_or_carry_a_value() {
    let model = shipped("vulkan");
    let pick = |of: &'static [&'static str]| proptest::sample::select(of);
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
    let (cases, rng_seed) = case_count_and_seed();
    let share = (cases / 3, rng_seed);
    let (racy, free) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases(share, &tests, |(attempt, tries, store, suffix, writer, reader, condition, together)| {
        let program = |also: &str| {
            let again = format!("add r9, r9, 1; {tries}");
            let attempt = attempt.replace("STORE", store).replace("AGAIN", &again);
            let (before, turn) = attempt.split_once('|').expect("two parts");
            let columns =
                [format!("{before}; LC10:; {turn}; LC11:; {suffix}"), writer.to_owned(), reader.to_owned()];
            let table = waiting::table(&columns, |thread| thread * together);
            let names = "x = 0; y = 0; t = 0; n = 0;";
            let text = format!("VULKAN retries\n{{ {names} }}\n{table}exists ({also}({condition}))");
            litmus::parse(&text, "retries").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
        };
        let decide = |test: &Test, unroll| {
            let options = PredictOptions { budget: Budget::UNLIMITED, unroll };
            let prediction = predict_without_outcomes(test, &model, &options).unwrap();
            let answers = (
                prediction.race == Race::Racy,
                prediction.can_meet_condition == Some(true),
                prediction.can_miss_condition == Some(true),
            );
            (answers, prediction.truncated_runs)
        };
        let reduced = program("");
        let (answers, truncated) = decide(&reduced, if tries.contains("beq") { 4 } else { 2 });
        if truncated > 0 {
            return Ok(());
        }
        let count = if answers.0 { &racy } else { &free };
        count.set(count.get() + 1);
        let (counted, _) = decide(&program("P0:r9 == 19 \\/ "), 5);
        if answers != counted {
            let text = litmus::print(&reduced);
            return Err(TestCaseError::fail(format!("{answers:?}, not {counted:?}\n{text}")));
        }
        Ok(())
    });
    let (racy, free) = (racy.get(), free.get());
    println!("{racy} tests with races and {free} without");
    assert!(racy > cases / 30 && free > cases / 30, "{racy} with races and {free} without were compared");
}
