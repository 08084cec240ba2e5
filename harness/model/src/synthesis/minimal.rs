//! Finds the minimal tests of a shape: the outcome is forbidden, and every weakening loses that.

use std::collections::{BTreeMap, HashSet};

use litmus::{Race, Test};

use super::weaken::{Weakened, weakenings};
use crate::{Model, PredictError, PredictOptions, PredictionSummary, predict_summary};

/// Verdict on a test's question under a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestStanding {
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
pub struct Minimal {
    /// The test.
    pub test: Test,
    /// Race-free weakenings that allow the outcome. If a device shows it there, the test is able to expose a
    /// violation.
    pub twins: Vec<Weakened>,
}

/// Result of a search below one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// The minimal tests, in the order of their text.
    pub minimal: Vec<Minimal>,
    /// Number of judged tests.
    pub asked: usize,
    /// True if the enumeration ended before its bound and no answer timed out.
    pub complete: bool,
}

/// Classifies a test's outcome by a verdict.
pub fn standing_of(test: &Test, verdict: &PredictionSummary) -> TestStanding {
    let observables = test.observables();
    let meets = |condition| {
        verdict.allowed.iter().any(|outcome| outcome.meets_condition(test, &observables, condition))
    };
    match verdict.race {
        Race::Unknown => TestStanding::Unknown,
        Race::Racy => TestStanding::Racy,
        Race::Free if test.question.as_ref().is_some_and(|question| meets(&question.condition)) => {
            TestStanding::Allowed
        }
        Race::Free => TestStanding::Forbidden,
    }
}

/// Finds the minimal tests at or below `top`, judging at most `most` tests.
///
/// # Errors
/// As for [`predict_summary`].
pub fn minimal_below(
    top: &Test,
    model: &Model,
    options: &PredictOptions,
    most: usize,
) -> Result<Below, PredictError> {
    let mut below = Below { complete: true, ..Below::default() };
    let mut known: BTreeMap<String, TestStanding> = BTreeMap::new();
    let mut ask = |test: &Test, below: &mut Below| -> Result<TestStanding, PredictError> {
        let text = litmus::print(test);
        if let Some(standing) = known.get(&text) {
            return Ok(*standing);
        }
        below.asked += 1;
        let standing = standing_of(test, &predict_summary(test, model, options)?);
        known.insert(text, standing);
        Ok(standing)
    };
    let mut found: BTreeMap<String, Minimal> = BTreeMap::new();
    let mut seen: HashSet<String> = HashSet::from([litmus::print(top)]);
    let mut open = vec![top.clone()];
    if ask(top, &mut below)? != TestStanding::Forbidden {
        return Ok(below);
    }
    while let Some(test) = open.pop() {
        let mut twins = Vec::new();
        let mut is_minimal = true;
        for weaker in weakenings(&test) {
            match ask(&weaker.test, &mut below)? {
                TestStanding::Forbidden => {
                    is_minimal = false;
                    if seen.insert(litmus::print(&weaker.test)) {
                        open.push(weaker.test);
                    }
                }
                TestStanding::Allowed => twins.push(weaker),
                // A race makes every outcome undefined, so the weakening does not keep the test
                // forbidden. It shows nothing on a device either.
                TestStanding::Racy => {}
                TestStanding::Unknown => below.complete = false,
            }
        }
        if is_minimal {
            found.insert(litmus::print(&test), Minimal { test, twins });
        }
        if below.asked > most {
            below.complete = false;
            break;
        }
    }
    below.minimal = found.into_values().collect();
    Ok(below)
}
