//! The weakest tests of a shape whose outcome a model still forbids.

use std::collections::{BTreeMap, HashSet};

use litmus::{Race, Test};

use super::weaken::{Weakened, weakenings};
use crate::{Model, Options, PredictError, Summary, verdict};

/// What a model makes of a test and its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestStanding {
    /// Race-free, and no execution shows the outcome asked about.
    Forbidden,
    /// Race-free, and some execution shows it.
    Allowed,
    /// Racy: nothing is promised.
    Racy,
    /// No answer in time.
    Unknown,
}

/// A forbidden test every weakening of which is forbidden no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    /// The test.
    pub test: Test,
    /// Its weakenings that are race-free and allow the outcome: what they show of a device says what the test could
    /// have seen.
    pub twins: Vec<Weakened>,
}

/// What was found below one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// The minimal tests, in the order of their text.
    pub minimal: Vec<Minimal>,
    /// Tests asked about.
    pub asked: usize,
    /// Whether the walk ended before its bound and every answer came in time.
    pub complete: bool,
}

/// Whether a test's outcome is forbidden, as far as a verdict says.
pub fn standing_of(test: &Test, verdict: &Summary) -> TestStanding {
    let observables = test.observables();
    let meets =
        |condition| verdict.allowed.iter().any(|outcome| outcome.meets(test, &observables, condition));
    match verdict.race {
        Race::Unknown => TestStanding::Unknown,
        Race::Racy => TestStanding::Racy,
        Race::Free if test.question.as_ref().is_some_and(|question| meets(&question.condition)) => {
            TestStanding::Allowed
        }
        Race::Free => TestStanding::Forbidden,
    }
}

/// The minimal tests at or below `top`, asking about `most` tests at most.
///
/// # Errors
/// As for [`verdict`].
pub fn minimal_below(
    top: &Test,
    model: &Model,
    options: &Options,
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
        let standing = standing_of(test, &verdict(test, model, options)?);
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
