//! Explanations of verdicts.
//!
//! An allowed outcome gets a witness execution. A forbidden outcome gets the cycle that breaks an axiom. A
//! race gets its pair of accesses and a minimal fix. Explanations enumerate candidate executions within the
//! bounds of [`ExplainOptions`]; past a bound, parts are missing but never wrong.

mod derive;
mod events;
mod examine;
mod fix;
mod strengthen;

use litmus::{Condition, Question, QuestionKind, Race, Span, Test};

use crate::{Budget, Model, PredictError, PredictOptions, predict, predict_with_growing_bound};
use examine::ExecutionSearch;
use fix::FixGoal;
use solver::BudgetTracker;

pub use fix::{FixSearchResult, InstructionChange, Minimality};

/// Question and resource limits of an explanation.
#[derive(Clone, Debug)]
pub struct ExplainOptions<'b> {
    /// The outcome to explain. Default: the condition of the test's question, negated under `forall`.
    pub outcome: Option<Condition>,
    /// Bound on iterations of a loop body. By default it grows while runs are cut off.
    pub unroll: Option<u32>,
    /// Bound on the candidate executions for each of witness, broken axiom and race.
    pub max_candidates: u64,
    /// Budget of the verdict; past it, the verdict is unknown.
    pub verdict_budget: Budget<'b>,
    /// Budget of the explaining executions; past it, they are missing.
    pub search_budget: Budget<'b>,
    /// Limit of steps for the cheapest fix; beyond it, any fix without idle changes is returned.
    pub max_fix_steps: usize,
    /// Bound on the changed programs that the search for the cheapest fix tries.
    pub max_fix_programs: usize,
    /// True if the search also looks for a fix that forbids the outcome.
    pub find_forbidding_fix: bool,
}

impl Default for ExplainOptions<'_> {
    fn default() -> Self {
        ExplainOptions {
            outcome: None,
            unroll: None,
            max_candidates: 200_000,
            verdict_budget: Budget::default(),
            search_budget: Budget::default(),
            max_fix_steps: 4,
            max_fix_programs: 2_000,
            find_forbidding_fix: false,
        }
    }
}

/// The reason that a model allows or forbids an outcome, and the program's races.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Name of the model.
    pub model: String,
    /// The explained outcome, as a condition in its canonical text.
    pub outcome: String,
    /// The model's verdict on the outcome.
    pub answer: ExplanationAnswer,
    /// Verdict on data races of the program.
    pub race: Race,
    /// True if it races only by values out of thin air.
    pub race_thin_air: bool,
    /// True if some read is uninitialised; `None` if unknown.
    pub uninitialised_read: Option<bool>,
    /// An uninitialised read, if one was found within the bounds.
    pub found_uninitialised_read: Option<UninitialisedRead>,
    /// A race, if one was found within the bounds.
    pub found_race: Option<FoundRace>,
    /// The cheapest strengthening that removes all races and forbids the outcome.
    ///
    /// Computed if requested, if the outcome is allowed but no sequential execution shows it, and if the fix
    /// of a race does not forbid it already.
    pub forbidding_fix: Option<FixSearchResult>,
}

/// Verdict on an outcome, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplanationAnswer {
    /// Some consistent execution shows the outcome.
    Allowed {
        /// A witness; `None` if the search reached its bounds first.
        witness: Option<ExplainedExecution>,
    },
    /// Candidate executions show the outcome, and each violates an axiom.
    Forbidden {
        /// The candidate with the fewest violations, and its first violation.
        closest: Option<(ExplainedExecution, BrokenAxiom)>,
        /// Number of examined candidate executions with the outcome.
        candidates: u64,
        /// True if all of them were examined.
        complete: bool,
    },
    /// No candidate execution shows the outcome: no written value and no path of the program leads to it.
    Impossible,
    /// Unknown within the bounds.
    Unknown,
}

/// An execution: its events, and the edges worth drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedExecution {
    /// The events: initial writes first, then thread by thread in program order, then the reads of final
    /// values.
    pub events: Vec<ExplainedEvent>,
    /// Relations between events, base relations first. Program order is omitted, because the order of the
    /// events implies it.
    pub edges: Vec<ExplainedEdge>,
    /// Final values by observable name.
    pub outcome: Vec<(String, String)>,
    /// True if some of its values depend on themselves: out of thin air.
    pub thin_air: bool,
}

/// Index of an event in [`ExplainedExecution::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u16);

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedEvent {
    /// Label: a letter for events of threads, `x=0` for an initial write, `final x` for a final read.
    pub label: String,
    /// Owner of the event.
    pub owner: EventOwner,
    /// Category in one or two words: `read`, `write`, `memory barrier`, …
    pub category: &'static str,
    /// Canonical text of its instruction; empty for events without one.
    pub text: String,
    /// Source location of the instruction.
    pub span: Span,
    /// The value read or written, with its location: `x = 1`.
    pub access: Option<String>,
}

/// Owner of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOwner {
    /// The initial state.
    Initial,
    /// An instruction of a thread: index of the thread, index of the instruction.
    Thread(usize, usize),
    /// The reader of final values.
    Final,
}

/// A pair of a relation, with its derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedEdge {
    /// Its source.
    pub from: EventId,
    /// Its target.
    pub to: EventId,
    /// Name of the relation in the model's text or the engine.
    pub relation: String,
    /// The alternative of the relation that holds; `None` if it has only one.
    pub via: Option<String>,
    /// The statement that defines the pair; `None` for primitive relations.
    pub statement: Option<StatementLocation>,
    /// The clauses that the statement, or this part of it, cites.
    pub clauses: Vec<String>,
    /// The pairs from which it is derived, one level deeper.
    pub premises: Vec<ExplainedEdge>,
}

/// A statement of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLocation {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// A broken axiom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenAxiom {
    /// Its text, without line breaks.
    pub text: String,
    /// Name of the axiom, if it has one.
    pub name: Option<String>,
    /// Source location of the axiom.
    pub location: StatementLocation,
    /// The clauses that it cites.
    pub clauses: Vec<String>,
    /// Edges that violate the axiom: a cycle in order, or a forbidden pair. Empty for an axiom that requires
    /// existence.
    pub edges: Vec<ExplainedEdge>,
    /// True if the edges close a cycle.
    pub is_cycle: bool,
    /// The events of these edges.
    pub events: Vec<EventId>,
}

/// A read of an undefined initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UninitialisedRead {
    /// A consistent execution with this read.
    pub execution: ExplainedExecution,
    /// The read.
    pub read: EventId,
}

/// A race in a consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRace {
    /// The execution.
    pub execution: ExplainedExecution,
    /// The flag that is raised.
    pub flag: BrokenAxiom,
    /// The racing events; `None` if the flag does not describe a pair.
    pub pair: Option<(EventId, EventId)>,
    /// The relations that would order the pair, in either direction.
    pub missing_relations: Vec<String>,
    /// The cheapest strengthening that removes all races.
    pub fix: FixSearchResult,
}

/// Consistent executions of a test, within the search bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistentExecutions {
    /// Name of the model.
    pub model: String,
    /// The observed outcome that distinguishes the executions, as a condition in canonical text.
    pub outcome: String,
    /// The executions: first those that show the outcome, then the others.
    pub executions: Vec<ConsistentExecution>,
    /// True if these are all executions that end within the loop bound.
    pub complete: bool,
    /// The loop bound, if it cut off a run.
    pub loop_bound: Option<u32>,
}

/// A consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistentExecution {
    /// The execution itself.
    pub execution: ExplainedExecution,
    /// True if it shows the outcome.
    pub is_witness: bool,
    /// True if it raises a flag: the program races, and is undefined.
    pub is_racy: bool,
}

/// Returns up to `max_executions` consistent executions within the loop bound; executions with the outcome come first.
/// Modification orders count as distinct even if the model does not constrain them.
///
/// # Errors
/// As [`predict`].
pub fn list_consistent_executions(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
    max_executions: usize,
) -> Result<ConsistentExecutions, PredictError> {
    list_executions(test, model, options, max_executions, &[true, false])
}

/// Returns up to `max_executions` consistent executions with the outcome, as [`list_consistent_executions`] does.
///
/// # Errors
/// As [`predict`].
pub fn list_witness_executions(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
    max_executions: usize,
) -> Result<ConsistentExecutions, PredictError> {
    list_executions(test, model, options, max_executions, &[true])
}

/// Lists executions with the outcome, without it, or both, in the order of `witnesses`.
fn list_executions(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
    max_executions: usize,
    witnesses: &[bool],
) -> Result<ConsistentExecutions, PredictError> {
    let (outcome_test, condition) = with_outcome_question(test, options);
    let tracker = BudgetTracker::new(options.search_budget);
    let unroll = options.unroll.unwrap_or(1).max(1);
    let search = ExecutionSearch::new(&outcome_test, model, options, unroll, &tracker)?;
    let mut found = Vec::new();
    let mut complete = true;
    for witness in witnesses.iter().copied() {
        let shown_condition =
            if witness { condition.clone() } else { Condition::Not(Box::new(condition.clone())) };
        let (executions, all) =
            search.list_consistent(&shown_condition, max_executions.saturating_sub(found.len()))?;
        complete &= all;
        let executions = executions.into_iter();
        found.extend(executions.map(|(execution, flagged)| ConsistentExecution {
            execution,
            is_witness: witness,
            is_racy: flagged,
        }));
    }
    Ok(ConsistentExecutions {
        model: model.name().to_owned(),
        outcome: condition.to_text(test),
        executions: found,
        complete,
        loop_bound: search.is_truncated().then_some(unroll),
    })
}

/// Returns the test with the explained outcome as its question, and the condition.
fn with_outcome_question(test: &Test, options: &ExplainOptions) -> (Test, Condition) {
    let condition = match (&options.outcome, &test.question) {
        (Some(condition), _) => condition.clone(),
        // For a claim about all executions, the counterexamples are explained.
        (None, Some(Question { kind: QuestionKind::Forall, condition, .. })) => {
            Condition::Not(Box::new(condition.clone()))
        }
        (None, Some(question)) => question.condition.clone(),
        (None, None) => Condition::True,
    };
    // The observables derive from the question, so that locations of the outcome have a final value.
    let mut changed = test.clone();
    let span = test.question.as_ref().map_or(Span::default(), |question| question.span);
    changed.question = Some(Question { kind: QuestionKind::Exists, condition: condition.clone(), span });
    (changed, condition)
}

/// Explains an outcome of a test under a model.
///
/// ```
/// use model::{ExplainOptions, ExplanationAnswer, Model, explain_outcome};
///
/// let text = litmus::corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").ok_or("no such test")?.text;
/// let test = litmus::parse(text, "MP+rel-acq").map_err(|errors| errors.to_string())?;
/// let vulkan = Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
/// let explanation = explain_outcome(&test, &vulkan, &ExplainOptions::default()).map_err(|error| error.to_string())?;
/// let ExplanationAnswer::Forbidden { closest: Some((_, broken)), .. } = explanation.answer else { return Err("allowed".into()) };
/// assert_eq!(broken.name.as_deref(), Some("consistency"));
/// assert!(broken.edges.iter().any(|edge| edge.relation == "fr"));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// As [`predict`].
pub fn explain_outcome(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
) -> Result<Explanation, PredictError> {
    let (outcome_test, condition) = with_outcome_question(test, options);
    let verdict =
        PredictOptions { budget: options.verdict_budget, unroll: options.unroll.unwrap_or(1).max(1) };
    let prediction = match options.unroll {
        Some(_) => predict(&outcome_test, model, &verdict)?,
        None => predict_with_growing_bound(&outcome_test, model, &verdict)?,
    };
    let tracker = BudgetTracker::new(options.search_budget);
    let mut search = ExecutionSearch::new(&outcome_test, model, options, prediction.bound, &tracker)?;
    let answer = match search.find_answer(&condition, prediction.can_meet_condition)? {
        // The outcomes of runs beyond the loop bound are unknown.
        ExplanationAnswer::Forbidden { .. } | ExplanationAnswer::Impossible
            if prediction.truncated_runs > 0 =>
        {
            ExplanationAnswer::Unknown
        }
        answer => answer,
    };
    let race_found = match prediction.race {
        Race::Racy => search.find_race(&condition, || {
            fix::find_fix(FixGoal::NoRace, &outcome_test, model, options, prediction.bound, &tracker)
        })?,
        Race::Free | Race::Unknown => None,
    };
    let uninitialised_found =
        if prediction.uninitialised_read == Some(true) { search.find_uninitialised_read()? } else { None };
    // True if the fix of the race forbids the outcome too, or if the race has no fix.
    let fix_suffices = race_found.as_ref().is_some_and(|raced| match raced.fix {
        FixSearchResult::Found { allowed, .. } => allowed == Some(false),
        FixSearchResult::Impossible | FixSearchResult::LimitReached => true,
    });
    // No synchronization forbids an outcome that sequential consistency allows.
    let weak = prediction.can_meet_condition == Some(true)
        && prediction.outcomes.iter().all(|(outcome, predicted)| {
            predicted.weak || !outcome.meets_condition(&outcome_test, &prediction.observables, &condition)
        });
    let forbidding_fix = if options.find_forbidding_fix && weak && !fix_suffices && prediction.complete {
        Some(fix::find_fix(FixGoal::Forbidden, &outcome_test, model, options, prediction.bound, &tracker)?)
    } else {
        None
    };
    Ok(Explanation {
        model: model.name().to_owned(),
        outcome: condition.to_text(test),
        answer,
        race: prediction.race,
        race_thin_air: prediction.race_thin_air,
        uninitialised_read: prediction.uninitialised_read,
        found_uninitialised_read: uninitialised_found,
        found_race: race_found,
        forbidding_fix,
    })
}
