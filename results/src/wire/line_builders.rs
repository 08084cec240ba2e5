//! Construction of the published lines of predictions and judgements.

use litmus::{Observable, Outcome, PredictedOutcome, Prediction, QuestionKind, Race, Test};

use super::{
    CHECK_SCHEMA, CheckLine, CheckOutcome, DriverRecord, Executions, Hashes, HsaRun, LevelWord, Query,
    RUN_SCHEMA, RaceWord, RunLine, RunOutcome, VerdictWord,
};
use crate::answer::{answer_question, is_missing_execution};
use crate::portability::HsaComparison;
use crate::reason::Reason;
use crate::state::state_from_outcome;

/// The inputs of a prediction line other than the prediction.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext<'a> {
    /// Test id.
    pub id: &'a str,
    /// The file.
    pub file: &'a str,
    /// The question as written in the test; empty without one.
    pub question: &'a str,
    /// Microseconds from parsed test to answer.
    pub micros: u64,
}

impl CheckLine {
    /// Builds the line of a test and its prediction.
    pub fn new(test: &Test, prediction: &Prediction, context: CheckContext<'_>) -> CheckLine {
        let no_execution = is_missing_execution(test, prediction);
        // If the search ended early, an outcome without an execution so far may still be allowed.
        let ended_early =
            !prediction.complete && prediction.truncated_runs == 0 && prediction.race != Race::Free;
        CheckLine {
            schema: CHECK_SCHEMA.to_owned(),
            id: context.id.to_owned(),
            file: context.file.to_owned(),
            name: test.name.clone(),
            model: prediction.model.clone(),
            race: if no_execution { RaceWord::Unknown } else { prediction.race.into() },
            race_thin_air: prediction.race_thin_air,
            uninitialised_read: prediction.uninitialised_read.filter(|_| test.has_undefined_locations()),
            level: prediction.undefinedness.map(LevelWord::from),
            queries: answer_question(test, prediction)
                .map(|answer| Query {
                    text: context.question.to_owned(),
                    // No answer if the search ran out of time; an answer within a loop bound remains.
                    holds: answer.holds.filter(|_| {
                        !no_execution && (prediction.race != Race::Unknown || prediction.truncated_runs > 0)
                    }),
                    expected: answer.expected,
                })
                .into_iter()
                .collect(),
            outcomes: prediction
                .outcomes
                .iter()
                .filter(|(_, predicted)| predicted.allowed || !ended_early)
                .map(|(outcome, predicted)| CheckOutcome {
                    state: state_from_outcome(test, &prediction.observables, outcome),
                    allowed: predicted.allowed,
                    weak: predicted.weak,
                    filtered: predicted.filtered,
                    thin_air: predicted.thin_air,
                    witness: test.question.as_ref().map(|question| {
                        outcome.meets_condition(test, &prediction.observables, &question.condition)
                    }),
                })
                .collect(),
            executions: Executions {
                candidate: prediction.candidate_executions,
                consistent: prediction.consistent_executions,
            },
            bound: prediction.bound,
            cut: prediction.truncated_runs,
            runs: prediction.runs,
            micros: context.micros,
            no_execution,
            outcomes_listed: (ended_early || !prediction.complete && prediction.outcomes.is_empty())
                .then_some(false),
            ..CheckLine::default()
        }
    }
}

/// The facts that the line of every kind of run has, other than its verdict.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// Test id.
    pub id: String,
    /// The name in the test's header, which [`RunLine::of_test`] fills in, or the entry point of a shader.
    pub name: String,
    /// Name of the device.
    pub device: String,
    /// Name of the model.
    pub model: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Name of the stress.
    pub stress: String,
    /// A command that repeats the run.
    pub replay: String,
    /// Hashes of the inputs.
    pub hashes: Hashes,
    /// The driver, if known.
    pub driver: Option<DriverRecord>,
}

/// A verdict as a run line publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineVerdict {
    /// The verdict.
    pub verdict: VerdictWord,
    /// The published reason of `inconclusive`, or the reason of `skipped`.
    pub reason: Option<String>,
    /// An explanation in words.
    pub detail: Option<String>,
    /// True if the run could have shown a violation.
    pub exercised: bool,
}

impl LineVerdict {
    /// Creates a verdict without a reason on a run that was not exercised.
    pub fn new(verdict: VerdictWord, detail: String) -> LineVerdict {
        LineVerdict { verdict, reason: None, detail: Some(detail), exercised: false }
    }

    /// Creates an inconclusive verdict on a run that was not exercised.
    pub fn inconclusive(reason: Reason, detail: String) -> LineVerdict {
        let reason = Some(reason.name().to_owned());
        LineVerdict { reason, ..LineVerdict::new(VerdictWord::Inconclusive, detail) }
    }

    /// Creates the verdict of a test that does not run, for the reason `why`.
    pub fn skipped(why: &str) -> LineVerdict {
        let reason = Some(why.to_owned());
        LineVerdict { reason, ..LineVerdict::new(VerdictWord::Skipped, why.to_owned()) }
    }
}

impl HsaRun {
    /// Builds HSA's part of the line for the lowered program `test`; in `passed` instances, every `await` read its
    /// value.
    pub(crate) fn new(test: &Test, comparison: &HsaComparison, passed: u64) -> HsaRun {
        let hsa = &comparison.hsa;
        let question_kind = test.question.as_ref().map(|question| question.kind);
        HsaRun {
            model: hsa.model.clone(),
            race: hsa.race.into(),
            level: hsa.undefinedness.map(LevelWord::from),
            class: comparison.class.map(|class| class.name().to_owned()),
            allowed: match question_kind {
                None => None,
                Some(QuestionKind::Forall) => hsa.can_miss_condition,
                Some(_) => hsa.can_meet_condition,
            },
            passed,
        }
    }
}

impl RunLine {
    /// Builds the fields that the line of every kind of run has, without a verdict; the others are empty.
    pub fn of_run(context: RunContext) -> RunLine {
        RunLine {
            schema: RUN_SCHEMA.to_owned(),
            id: context.id,
            name: context.name,
            device: context.device,
            model: context.model,
            seed: context.seed,
            stress: context.stress,
            replay: context.replay,
            hashes: context.hashes,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            driver: context.driver,
            ..RunLine::default()
        }
    }

    /// Builds the line of a run of `test`, without a verdict and counts.
    pub fn of_test(test: &Test, context: RunContext) -> RunLine {
        RunLine {
            name: test.name.clone(),
            question: test.question.as_ref().map(|question| question.to_text(test)),
            ..RunLine::of_run(context)
        }
    }

    /// Returns the line with this verdict.
    pub fn with_verdict(self, verdict: LineVerdict) -> RunLine {
        let LineVerdict { verdict, reason, detail, exercised } = verdict;
        RunLine { verdict, reason, detail, exercised, ..self }
    }

    /// Returns true if this is the reason of its verdict.
    pub fn has_reason(&self, reason: Reason) -> bool {
        self.reason.as_deref() == Some(reason.name())
    }
}

impl RunOutcome {
    /// Builds the row of a predicted outcome of `test`, without counts.
    pub(crate) fn new(
        test: &Test,
        observables: &[Observable],
        outcome: &Outcome,
        predicted: &PredictedOutcome,
    ) -> RunOutcome {
        let question = test.question.as_ref();
        RunOutcome {
            state: state_from_outcome(test, observables, outcome),
            allowed: predicted.allowed,
            weak: predicted.weak,
            filtered: predicted.filtered,
            thin_air: predicted.thin_air,
            witness: question.map(|question| outcome.meets_condition(test, observables, &question.condition)),
            ..RunOutcome::default()
        }
    }
}
