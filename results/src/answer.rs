//! What a prediction answers to the question of a test, and whether that is what the test expects.

use litmus::{Metadata, Prediction, QuestionKind, Race, Reachability, Test};

/// The answer to the question of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether what is asked holds; nothing when the search was cut short.
    pub holds: Option<bool>,
    /// Whether the test expects it to hold under this model; nothing where it does not say.
    pub expected: Option<bool>,
}

impl Answer {
    /// Whether the answer is known and differs from the expected one.
    pub fn surprises(self) -> bool {
        matches!((self.holds, self.expected), (Some(holds), Some(expected)) if holds != expected)
    }
}

/// The answer of `prediction` to the question of `test`; nothing when the test asks nothing.
///
/// Outcomes that the test's filter excludes do not count.
pub fn answer(test: &Test, prediction: &Prediction) -> Option<Answer> {
    let question = test.question.as_ref()?;
    let holds = match question.kind {
        QuestionKind::Exists | QuestionKind::Final => prediction.meets,
        QuestionKind::NotExists => prediction.meets.map(|meets| !meets),
        QuestionKind::Forall => prediction.misses.map(|misses| !misses),
    };
    let expected = expectation(&test.metadata, &prediction.model).map(|reachability| {
        let reachable = reachability == Reachability::Allowed;
        match question.kind {
            QuestionKind::Exists | QuestionKind::Final => reachable,
            QuestionKind::NotExists | QuestionKind::Forall => !reachable,
        }
    });
    Some(Answer { holds, expected })
}

fn expectation(metadata: &Metadata, model: &str) -> Option<Reachability> {
    metadata.expectations.iter().find(|e| e.model == model).map(|e| e.reachability)
}

/// What the test expects of races under the model, where it says so.
pub fn expected_race(test: &Test, model: &str) -> Option<Race> {
    test.metadata.expectations.iter().filter(|e| e.model == model).find_map(|e| e.race)
}

/// Whether it is known of uninitialised reads that the test expects the contrary: it says so where it speaks of races.
pub fn uninitialised_surprises(test: &Test, prediction: &Prediction) -> bool {
    let expected =
        test.metadata.expectations.iter().find(|e| e.model == prediction.model && e.race.is_some());
    expected.is_some_and(|expected| {
        prediction.uninitialised_read.is_some_and(|found| found != expected.uninitialised)
    })
}

/// Whether the race answer is known and differs from what the test expects.
pub fn race_surprises(test: &Test, prediction: &Prediction) -> bool {
    match (prediction.race, expected_race(test, &prediction.model)) {
        (Race::Unknown, _) | (_, None | Some(Race::Unknown)) => false,
        (found, Some(expected)) => found != expected,
    }
}
