//! The engine's spin-loop reductions against the naive enumerator, which has none.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use litmus::{Race, Test};
use model::{Budget, Model, Options, decide, naive, predict};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::common::waiting;

/// Candidate executions that the naive enumerator may take for one test.
const LIMIT: u64 = 1_000;

/// Random tests: a fixed number with a fixed seed, or `VK_LITMUS_SOAK_CASES` of them.
fn cases() -> (u32, RngSeed) {
    match std::env::var("VK_LITMUS_SOAK_CASES").ok().and_then(|n| n.parse().ok()) {
        Some(cases) => (cases, RngSeed::Random),
        None => (600, RngSeed::Fixed(27)),
    }
}

/// Compares what is decided with and without the question, and what is predicted, with the oracle; `None` where
/// the test is too large for it.
fn compare(test: &Test, model: &Model) -> Result<Option<Race>, String> {
    let slow = naive::enumerate(test, model, 1, LIMIT).map_err(|e| e.to_string())?;
    let Some(slow) = slow else { return Ok(None) };
    let observables = test.observables();
    let question = test.question.as_ref().expect("a question");
    let says = |wanted: bool| {
        slow.allowed.iter().any(|outcome| {
            test.filter.as_ref().is_none_or(|filter| outcome.meets_condition(test, &observables, filter))
                && outcome.meets_condition(test, &observables, &question.condition) == wanted
        })
    };
    let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
    let unasked = Test { question: None, ..test.clone() };
    for (way, said) in [
        ("decided", decide(test, model, &options)),
        ("decided, unasked", decide(&unasked, model, &options)),
        ("predicted", predict(test, model, &options)),
    ] {
        let said = said.map_err(|e| e.to_string())?;
        // Without a counterexample, the result beyond the loop bound is unknown.
        let known = |found: bool| (found || said.truncated_runs == 0).then_some(found);
        let race = if slow.race == Race::Free && said.truncated_runs > 0 { Race::Unknown } else { slow.race };
        let answers = (known(says(true)), known(says(false)));
        let answers = if way == "decided, unasked" { (None, None) } else { answers };
        let uninitialised = if test.has_undefined() { known(slow.uninitialised_read) } else { Some(false) };
        let wanted = (race, slow.race_thin_air && said.truncated_runs == 0, answers, uninitialised);
        let found = (said.race, said.race_thin_air, (said.meets, said.misses), said.uninitialised_read);
        if found != wanted {
            return Err(format!("{way}: {found:?}, not {wanted:?}"));
        }
    }
    Ok(Some(slow.race))
}

fn agrees_on(tests: &impl Strategy<Value = Test>, name: &str, share: u32) {
    let model = Model::shipped(name).expect("a shipped model").unwrap();
    let (cases, rng_seed) = cases();
    let cases = cases / share;
    let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
    let (free, racy) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    let found = TestRunner::new(config).run(tests, |test| {
        let race = compare(&test, &model)
            .map_err(|why| TestCaseError::fail(format!("{why}\n{}", litmus::print(&test))))?;
        let count = if race == Some(Race::Free) { &free } else { &racy };
        count.set(count.get() + u32::from(race.is_some()));
        Ok(())
    });
    found.unwrap();
    println!("{name}: {} tests free of races, {} with some, of {cases}", free.get(), racy.get());
    assert!(free.get() > cases / 5 && racy.get() > cases / 5, "both must be compared often");
}

#[test]
fn threads_that_wait() {
    agrees_on(&waiting::waiting(), "vulkan", 1);
    agrees_on(&waiting::waiting(), "vulkan-2019", 4);
}
