//! Properties of random inputs, and the engine compared with the naive enumerator.

use std::collections::HashSet;

use litmus::{Outcome, PredictedOutcome, Prediction, Race, Test};
use model::naive::NaiveAnswer;
use model::{Budget, Model, PredictOptions};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// No limit of steps, and each loop body once.
pub const UNLIMITED: PredictOptions = PredictOptions { budget: Budget::UNLIMITED, unroll: 1 };

/// Checks a property of random inputs; panics with the smallest input that lacks it.
pub fn check_cases<S: Strategy>(
    (cases, rng_seed): (u32, RngSeed),
    inputs: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(inputs, property).unwrap_or_else(|error| panic!("{error}"));
}

/// Returns a number of random inputs and a seed: as given, or `VK_LITMUS_SOAK_CASES` inputs from a random seed.
pub fn soak_cases(cases: u32, seed: u64) -> (u32, RngSeed) {
    match std::env::var("VK_LITMUS_SOAK_CASES").ok().and_then(|n| n.parse().ok()) {
        Some(cases) => (cases, RngSeed::Random),
        None => (cases, RngSeed::Fixed(seed)),
    }
}

/// Returns a shipped model, or the one that determines if outcomes are interleaved.
pub fn shipped(name: &str) -> Model {
    let text = || Model::shipped_text(name).unwrap_or_else(|| panic!("no model {name}"));
    Model::shipped(name).unwrap_or_else(|| Model::from_text(name, text(), &|_| None)).unwrap()
}

/// Returns the outcomes of a prediction with a property.
pub fn outcomes_where(
    prediction: &Prediction,
    has_property: impl Fn(&PredictedOutcome) -> bool,
) -> HashSet<Outcome> {
    let outcomes = prediction.outcomes.iter().filter(|(_, predicted)| has_property(predicted));
    outcomes.map(|(outcome, _)| outcome.clone()).collect()
}

/// Compares a prediction with the answer of the naive enumerator: the list of outcomes if it is one, the race, the
/// answers to the question and uninitialised reads. What the loop bound leaves open is unknown to the prediction.
pub fn assert_agreement(
    test: &Test,
    prediction: &Prediction,
    expected: &NaiveAnswer,
    is_listed: bool,
) -> Result<(), TestCaseError> {
    let is_complete = prediction.truncated_runs == 0;
    let if_decided = |found: bool| (found || is_complete).then_some(found);
    let race = if expected.race == Race::Free && !is_complete { Race::Unknown } else { expected.race };
    let observables = test.observables();
    let is_in_filter = |outcome: &&Outcome| {
        test.filter.as_ref().is_none_or(|filter| outcome.meets_condition(test, &observables, filter))
    };
    let answer = |wanted: bool| {
        let condition = &test.question.as_ref()?.condition;
        let mut outcomes = expected.allowed.iter().filter(is_in_filter);
        if_decided(outcomes.any(|outcome| outcome.meets_condition(test, &observables, condition) == wanted))
    };
    // The answer is known for a test that initializes every location.
    let uninitialised =
        if test.has_undefined_locations() { if_decided(expected.uninitialised_read) } else { Some(false) };
    let expected_answers =
        (race, expected.race_thin_air && is_complete, answer(true), answer(false), uninitialised);
    let answers = (
        prediction.race,
        prediction.race_thin_air,
        prediction.can_meet_condition,
        prediction.can_miss_condition,
        prediction.uninitialised_read,
    );
    let text = || litmus::print(test);
    if answers != expected_answers {
        return Err(TestCaseError::fail(format!("{answers:?}, not {expected_answers:?}\n{}", text())));
    }
    let allowed = outcomes_where(prediction, |predicted| predicted.allowed);
    let thin_air = outcomes_where(prediction, |predicted| predicted.thin_air);
    if is_listed && (&allowed, &thin_air) != (&expected.allowed, &expected.thin_air) {
        let only_engine: Vec<_> = allowed.difference(&expected.allowed).collect();
        let only_oracle: Vec<_> = expected.allowed.difference(&allowed).collect();
        return Err(TestCaseError::fail(format!(
            "outcomes of the engine alone: {only_engine:?}, of the oracle alone: {only_oracle:?}, out of thin air: \
             {thin_air:?} and {:?}\n{}",
            expected.thin_air,
            text()
        )));
    }
    Ok(())
}
