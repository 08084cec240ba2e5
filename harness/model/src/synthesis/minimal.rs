//! Finds the minimal tests of a shape: the outcome is forbidden, and every weakening loses that.

use std::collections::{BTreeMap, HashSet};

use litmus::{Race, Test};

use super::weaken::{WeakenedTest, weaken_test};
use crate::{Model, PredictError, PredictOptions, PredictionSummary, predict_summary};

/// Verdict on a test's question under a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionVerdict {
    /// Race-free, and no execution shows the outcome.
    Forbidden,
    /// Race-free, and some execution shows it.
    Allowed,
    /// Racy: nothing is promised.
    Racy,
    /// No answer in time.
    Unknown,
}

/// A forbidden test without a forbidden weakening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinimalTest {
    pub test: Test,
    /// Race-free weakenings that allow the outcome. If a device shows it there, the test is able to expose a
    /// violation.
    pub twins: Vec<WeakenedTest>,
}

/// Result of a search below one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinimalTests {
    /// The minimal tests, in the order of their text.
    pub minimal: Vec<MinimalTest>,
    pub judged_tests: usize,
    /// True if the enumeration ended before its bound and no answer timed out.
    pub complete: bool,
}

/// Classifies a test's outcome by a verdict.
pub fn classify_condition(test: &Test, verdict: &PredictionSummary) -> ConditionVerdict {
    let observables = test.observables();
    let meets = |condition| {
        verdict.allowed.iter().any(|outcome| outcome.meets_condition(test, &observables, condition))
    };
    match verdict.race {
        Race::Unknown => ConditionVerdict::Unknown,
        Race::Racy => ConditionVerdict::Racy,
        Race::Free if test.question.as_ref().is_some_and(|question| meets(&question.condition)) => {
            ConditionVerdict::Allowed
        }
        Race::Free => ConditionVerdict::Forbidden,
    }
}

/// Finds the minimal tests at or below `top`, judging at most `max_tests`.
///
/// # Errors
/// As for [`predict_summary`].
pub fn find_minimal_tests(
    top: &Test,
    model: &Model,
    options: &PredictOptions,
    max_tests: usize,
) -> Result<MinimalTests, PredictError> {
    let mut below = MinimalTests { complete: true, ..MinimalTests::default() };
    let mut verdicts: BTreeMap<String, ConditionVerdict> = BTreeMap::new();
    let mut judge = |test: &Test, result: &mut MinimalTests| -> Result<ConditionVerdict, PredictError> {
        let text = litmus::print(test);
        if let Some(known_verdict) = verdicts.get(&text) {
            return Ok(*known_verdict);
        }
        result.judged_tests += 1;
        let new_verdict = classify_condition(test, &predict_summary(test, model, options)?);
        verdicts.insert(text, new_verdict);
        Ok(new_verdict)
    };
    let mut found: BTreeMap<String, MinimalTest> = BTreeMap::new();
    let mut visited: HashSet<String> = HashSet::from([litmus::print(top)]);
    let mut worklist = vec![top.clone()];
    match judge(top, &mut below)? {
        ConditionVerdict::Forbidden => {}
        verdict => {
            below.complete = verdict != ConditionVerdict::Unknown;
            return Ok(below);
        }
    }
    while let Some(test) = worklist.pop() {
        let mut twins = Vec::new();
        let mut is_minimal = true;
        for weaker in weaken_test(&test) {
            match judge(&weaker.test, &mut below)? {
                ConditionVerdict::Forbidden => {
                    is_minimal = false;
                    if visited.insert(litmus::print(&weaker.test)) {
                        worklist.push(weaker.test);
                    }
                }
                ConditionVerdict::Allowed => twins.push(weaker),
                // A race makes every outcome undefined, so the weakening does not keep the test
                // forbidden. It shows nothing on a device either.
                ConditionVerdict::Racy => {}
                // The weakening may be forbidden, so nothing shows that the test is minimal.
                ConditionVerdict::Unknown => (is_minimal, below.complete) = (false, false),
            }
        }
        if is_minimal {
            found.insert(litmus::print(&test), MinimalTest { test, twins });
        }
        if below.judged_tests > max_tests {
            below.complete = false;
            break;
        }
    }
    below.minimal = found.into_values().collect();
    Ok(below)
}
