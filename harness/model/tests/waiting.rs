//! The spin-loop reductions of the engine compared with the naive enumerator, which has none.
#![expect(clippy::unwrap_used, reason = "tests")]

use litmus::{Prediction, Race, Test};
use model::{Model, PredictError, PredictOptions, naive, predict, predict_without_outcomes};
use proptest::prelude::Strategy;
use proptest::test_runner::{RngSeed, TestCaseError};

use crate::common;
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
    assert_agrees_on(&common::programs("waiting"), "vulkan", 2);
    assert_agrees_on(&common::programs("waiting"), "vulkan-2019", 4);
}

/// Compares the answers for programs that the engine reduces with those for equivalent programs whose loops it unrolls,
/// each with a loop bound. Returns how many of the compared programs race, and how many do not.
fn compare_with_unrolled<A: PartialEq + std::fmt::Debug>(
    share: u32,
    rule: &'static str,
    programs: impl Fn(String) -> [(String, u32); 2],
    answer: impl Fn(&Test, &PredictOptions) -> (Prediction, A),
) -> (u32, u32) {
    let (cases, rng_seed) = case_count_and_seed();
    let (racy, free) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases((cases / share, rng_seed), &common::texts(rule), |text| {
        let [reduced, unrolled] =
            programs(text).map(|(text, unroll)| (litmus::parse(&text, "waiting").unwrap(), unroll));
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

/// A loop that writes back the value that it read has the same outcomes as its first three iterations.
///
/// The engine recognizes this only for a constant operand, so it unrolls the program with a register.
#[test]
fn loops_that_put_a_value_back() {
    let programs =
        |text: String| [("1", 1), ("r8", 3)].map(|(one, unroll)| (text.replace("ONE", one), unroll));
    let (racy, free) = compare_with_unrolled(10, "put-back", programs, |test, options| {
        let prediction = predict(test, &shipped("vulkan"), options).unwrap();
        let allowed = outcomes_where(&prediction, |predicted| predicted.allowed);
        (prediction, allowed)
    });
    assert!(racy + free > case_count_and_seed().0 / 30, "{} were reduced", racy + free);
}

/// A loop whose turns leave the registers as they were has the same races and answers as its first three turns.
///
/// The engine recognizes this only if no register counts the turns.
#[test]
fn turns_that_may_race_or_store_a_final_value() {
    let programs = |text: String| {
        [("", "", 1), ("add r9, r9, 1", "P0:r9 == 9 \\/ ", 3)]
            .map(|(count, also, unroll)| (text.replace("COUNT", count).replace("ALSO", also), unroll))
    };
    let (racy, free) = compare_with_unrolled(3, "same-turns", programs, decide);
    let (cases, _) = case_count_and_seed();
    assert!(racy > cases / 30 && free > cases / 60, "{racy} with races and {free} without were compared");
}

/// Retry loops that store before each attempt, or carry a value to the next one, have the same races and answers
/// as their first five turns.
///
/// The engine recognizes this only if no register that counts the turns has an effect. Some loops end after a few
/// attempts.
#[test]
fn retries_that_store_or_carry_a_value() {
    let programs = |text: String| {
        let reduced_unroll = if text.contains("beq r6") { 4 } else { 2 };
        [("", reduced_unroll), ("P0:r9 == 19 \\/ ", 5)]
            .map(|(also, unroll)| (text.replace("ALSO", also), unroll))
    };
    let (racy, free) = compare_with_unrolled(3, "retries", programs, decide);
    let (cases, _) = case_count_and_seed();
    assert!(racy > cases / 30 && free > cases / 30, "{racy} with races and {free} without were compared");
}
