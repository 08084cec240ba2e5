//! The answer of a prediction to the question of a test, compared with the answer that the test expects.

use litmus::{Metadata, Prediction, QuestionKind, Race, Reachability, Test};

/// The answer to the question of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the condition holds; `None` if the search was incomplete.
    pub holds: Option<bool>,
    /// Whether the test expects it to hold under this model; `None` if the test states no expectation.
    pub expected: Option<bool>,
}

impl Answer {
    /// Returns true if the answer is known and differs from the expected one.
    pub fn is_unexpected(self) -> bool {
        matches!((self.holds, self.expected), (Some(holds), Some(expected)) if holds != expected)
    }
}

/// Evaluates the question of `test` over `prediction`; `None` if the test has no question.
///
/// Outcomes that the test's filter excludes do not count.
pub fn answer_question(test: &Test, prediction: &Prediction) -> Option<Answer> {
    let question = test.question.as_ref()?;
    let holds = match question.kind {
        QuestionKind::Exists | QuestionKind::Final => prediction.can_meet_condition,
        QuestionKind::NotExists => prediction.can_meet_condition.map(|meets| !meets),
        QuestionKind::Forall => prediction.can_miss_condition.map(|misses| !misses),
    };
    let expected = expected_reachability(&test.metadata, &prediction.model).map(|reachability| {
        let reachable = reachability == Reachability::Allowed;
        match question.kind {
            QuestionKind::Exists | QuestionKind::Final => reachable,
            QuestionKind::NotExists | QuestionKind::Forall => !reachable,
        }
    });
    Some(Answer { holds, expected })
}

fn expected_reachability(metadata: &Metadata, model: &str) -> Option<Reachability> {
    metadata.expectations.iter().find(|e| e.model == model).map(|e| e.reachability)
}

/// Returns the expected race status of the test under the model, if the test states one.
pub fn expected_race(test: &Test, model: &str) -> Option<Race> {
    test.metadata.expectations.iter().filter(|e| e.model == model).find_map(|e| e.race)
}

/// Returns true if the result for uninitialized reads differs from the test's stated expectation.
pub fn is_uninitialised_unexpected(test: &Test, prediction: &Prediction) -> bool {
    let expected =
        test.metadata.expectations.iter().find(|e| e.model == prediction.model && e.race.is_some());
    expected.is_some_and(|expected| {
        prediction.uninitialised_read.is_some_and(|found| found != expected.uninitialised)
    })
}

/// Returns true if the race status is known and differs from the test's stated expectation.
pub fn is_race_unexpected(test: &Test, prediction: &Prediction) -> bool {
    match (prediction.race, expected_race(test, &prediction.model)) {
        (Race::Unknown, _) | (_, None | Some(Race::Unknown)) => false,
        (found, Some(expected)) => found != expected,
    }
}

/// Returns true if the search was complete and found no consistent execution.
pub(crate) fn has_no_allowed_outcome(prediction: &Prediction) -> bool {
    prediction.complete && prediction.outcomes.values().all(|says| !says.allowed)
}

/// Returns true if no execution is consistent although every run of the program ends.
///
/// A program whose runs all end has a consistent execution, so the model or the input is wrong. False for
/// Khronos' tests, which force the values of reads.
pub(crate) fn is_missing_execution(test: &Test, prediction: &Prediction) -> bool {
    test.khronos.is_none() && has_no_allowed_outcome(prediction) && !test.may_hang()
}
