//! Construction of the published lines of predictions and judgements.

use litmus::{Prediction, QuestionKind, Race, Test};

use super::{
    CHECK_SCHEMA, CheckLine, CheckOutcome, DriftRecord, DriverRecord, Executions, Hashes, HsaRun, LevelWord,
    Query, RUN_SCHEMA, RaceWord, RunLine, RunOutcome, SpreadRun, UnexpectedValues, VerdictWord,
};
use crate::answer::answer_question;
use crate::judge::{Judgement, Verdict, is_missing_execution};
use crate::portability::HsaComparison;
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
            race_outside_filter: false,
            uninitialised_read: prediction.uninitialised_read.filter(|_| test.has_undefined_locations()),
            differences: Vec::new(),
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
            progress: None,
            no_execution,
            outcomes_listed: (ended_early || !prediction.complete && prediction.outcomes.is_empty())
                .then_some(false),
            findings: None,
            compiler: None,
            two_workgroup_finding: None,
            needs: Vec::new(),
        }
    }
}

/// The inputs of a run line other than the judgement.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// Test id.
    pub id: String,
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
    /// Memory type of the locations, if known.
    pub memory: Option<String>,
    /// Why the host counted although the stress requests counting on the device.
    pub counted_by_host: Option<String>,
    /// The part of the run under another layout.
    pub spread: Option<SpreadRun>,
    /// Hashes of the inputs.
    pub hashes: Hashes,
    /// Version of the tool.
    pub tool: String,
    /// The driver, if known.
    pub driver: Option<DriverRecord>,
    /// HSA's prediction, if the test was lowered from an HSA test.
    pub hsa_comparison: Option<HsaComparison>,
    /// The ids of the test's mutants in the same run.
    pub mutants: Vec<String>,
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
    /// Builds the line of a judgement on `test`, whose rows list `observables`.
    pub fn new(
        test: &Test,
        observables: &[litmus::Observable],
        judgement: &Judgement,
        context: RunContext,
    ) -> RunLine {
        let (reason, detail) = match judgement.verdict {
            Verdict::Skipped => (judgement.detail.clone(), judgement.detail.clone()),
            Verdict::Inconclusive(reason) => (Some(reason.name().to_owned()), judgement.detail.clone()),
            Verdict::Conforms | Verdict::Violates | Verdict::Undefined => (None, judgement.detail.clone()),
        };
        let passed = judgement.rows.iter().filter(|row| !row.predicted.filtered).map(|row| row.count).sum();
        RunLine {
            schema: RUN_SCHEMA.to_owned(),
            id: context.id,
            name: test.name.clone(),
            device: context.device,
            model: context.model,
            verdict: match judgement.verdict {
                Verdict::Conforms => VerdictWord::Conforms,
                Verdict::Violates => VerdictWord::Violates,
                Verdict::Undefined => VerdictWord::Undefined,
                Verdict::Inconclusive(_) => VerdictWord::Inconclusive,
                Verdict::Skipped => VerdictWord::Skipped,
            },
            race: judgement.race.map(RaceWord::from),
            reason,
            detail,
            exercised: judgement.exercised,
            instances: judgement.instances,
            interleaved: judgement.interleaved,
            not_executed: judgement.not_executed,
            unresolved: judgement.unresolved,
            repeated: judgement.repeated,
            seconds: judgement.seconds,
            batches: judgement.batches,
            outcomes: judgement
                .rows
                .iter()
                .map(|row| RunOutcome {
                    state: state_from_outcome(test, observables, &row.outcome),
                    count: row.count,
                    batches: row.batches,
                    allowed: row.predicted.allowed,
                    weak: row.predicted.weak,
                    filtered: row.predicted.filtered,
                    thin_air: row.predicted.thin_air,
                    witness: test
                        .question
                        .as_ref()
                        .map(|question| row.outcome.meets_condition(test, observables, &question.condition)),
                    hsa: context
                        .hsa_comparison
                        .as_ref()
                        .and_then(|beside| beside.allows.get(&row.outcome).copied()),
                })
                .collect(),
            unexpected: judgement
                .unexpected
                .iter()
                .map(|u| UnexpectedValues { raw: u.raw.clone(), count: u.count })
                .collect(),
            seed: context.seed,
            stress: context.stress,
            replay: context.replay,
            memory: context.memory,
            counted_by_host: context.counted_by_host,
            spread: context.spread,
            drift: judgement.drift.as_ref().map(|drift| DriftRecord {
                state: state_from_outcome(test, observables, &drift.outcome),
                earlier: drift.earlier,
                later: drift.later,
                p: drift.p,
            }),
            progress: None,
            shader: None,
            hashes: context.hashes,
            question: test.question.as_ref().map(|question| question.to_text(test)),
            tool: context.tool,
            driver: context.driver,
            hsa: context.hsa_comparison.as_ref().map(|beside| HsaRun::new(test, beside, passed)),
            mutants: context.mutants,
        }
    }
}
