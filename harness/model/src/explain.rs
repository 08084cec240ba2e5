//! Explanations: a witness of an allowed outcome, a violated axiom as a cycle, or a race with its cheapest
//! fix.

mod candidate;
mod derive;
mod events;
mod examine;
mod mend;
mod strengthen;

use litmus::{Condition, Question, QuestionKind, Race, Span, Test};

use crate::budget::BudgetTracker;
use crate::{Budget, Model, Options, PredictError, predict, predict_growing};
use examine::Search;
use mend::Goal;

pub use mend::{Change, Least, Mend};

/// The question to explain, and its budgets.
#[derive(Clone, Debug)]
pub struct ExplainOptions<'b> {
    /// The outcome to explain. Default: the condition of the test's question, negated under `forall`.
    pub outcome: Option<Condition>,
    /// Limit of executions of a loop body. By default it grows up to 8 while runs are cut off.
    pub unroll: Option<u32>,
    /// Limit of candidate executions visited for each of witness, broken axiom and race.
    pub candidates: u64,
    /// Budget of the verdict; if it is exceeded, the verdict stays unknown.
    pub verdict: Budget<'b>,
    /// Additional budget of the executions that show the reason; if it is exceeded, the missing parts stay
    /// unknown.
    pub budget: Budget<'b>,
    /// Limit of steps for the cheapest fix; beyond it, any fix without idle changes is returned.
    pub mend_steps: usize,
    /// Limit of changed programs tried for the cheapest fix.
    pub mend_programs: usize,
    /// If set, also searches for the cheapest change that forbids the outcome.
    pub forbid: bool,
}

impl Default for ExplainOptions<'_> {
    fn default() -> Self {
        ExplainOptions {
            outcome: None,
            unroll: None,
            candidates: 200_000,
            verdict: Budget::default(),
            budget: Budget::default(),
            mend_steps: 4,
            mend_programs: 2_000,
            forbid: false,
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
    /// The model's answer.
    pub answer: Answer,
    /// Race status of the program.
    pub race: Race,
    /// True if every race needs out-of-thin-air values.
    pub race_thin_air: bool,
    /// True if some read is uninitialized; `None` if unknown.
    pub uninitialised_read: Option<bool>,
    /// An uninitialized read, if one was found within the bounds.
    pub uninitialised_found: Option<Uninitialised>,
    /// A data race, if one was found within the bounds.
    pub race_found: Option<RaceFound>,
    /// The cheapest strengthening that removes all races and forbids the outcome.
    ///
    /// It is searched only on request, if the outcome is allowed although no serial execution shows it, and
    /// if the fix of a race does not forbid it already.
    pub forbids: Option<Mend>,
}

/// The model's answer for an outcome, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Some consistent execution shows the outcome.
    Allowed {
        /// A witness; `None` if none was found within the bounds.
        witness: Option<Execution>,
    },
    /// Candidate executions show the outcome, and each violates an axiom.
    Forbidden {
        /// The candidate with the fewest violations, and its first violation.
        closest: Option<(Execution, Broken)>,
        /// Number of visited candidate executions that show the outcome.
        candidates: u64,
        /// True if all candidate executions were visited.
        complete: bool,
    },
    /// No candidate execution shows the outcome: no written value and no path of the program leads to it.
    Impossible,
    /// Unknown within the bounds.
    Unknown,
}

/// An execution: its events, and the edges worth drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The events: initial writes first, then thread by thread in program order, then the reads of final
    /// values.
    pub events: Vec<Event>,
    /// Relations between events, base relations first. Program order is omitted: the order of events implies
    /// it.
    pub edges: Vec<Edge>,
    /// Final values by observable name.
    pub outcome: Vec<(String, String)>,
    /// True if some value depends on itself (out of thin air).
    pub thin_air: bool,
}

/// Index of an event in [`Execution::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u16);

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Display name: a letter for events of threads, `x=0` for an initial write, `final x` for a final read.
    pub label: String,
    /// The thread or other owner of the event.
    pub owner: EventOwner,
    /// The kind of event in a word or two: `read`, `write`, `memory barrier`, …
    pub what: &'static str,
    /// Canonical text of its instruction; empty for events without one.
    pub text: String,
    /// Source position of the instruction.
    pub span: Span,
    /// The value read or written, with its location: `x = 1`.
    pub access: Option<String>,
}

/// The owner of an event.
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
pub struct Edge {
    /// Its source.
    pub from: EventId,
    /// Its target.
    pub to: EventId,
    /// Name of the relation in the model's text or the engine.
    pub relation: String,
    /// The alternative of the relation that holds; empty if it has only one.
    pub via: Option<String>,
    /// The statement of the model that defines the edge; `None` for edges of the execution itself.
    pub statement: Option<Place>,
    /// The clauses that the statement, or this part of it, cites.
    pub clauses: Vec<String>,
    /// The pairs from which it is derived, one level deeper.
    pub because: Vec<Edge>,
}

/// A statement of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// A broken axiom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its text, without line breaks.
    pub text: String,
    /// Name of the axiom, if it has one.
    pub name: Option<String>,
    /// Position of the axiom in the model.
    pub place: Place,
    /// The clauses that it cites.
    pub clauses: Vec<String>,
    /// The edges of a violating cycle or pair. Empty for an axiom that requires a non-empty relation.
    pub edges: Vec<Edge>,
    /// True if the edges form a cycle.
    pub cycle: bool,
    /// The events of these edges.
    pub events: Vec<EventId>,
}

/// A read of an undefined initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uninitialised {
    /// A consistent execution with this read.
    pub execution: Execution,
    /// The read.
    pub read: EventId,
}

/// A race in a consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceFound {
    /// The execution.
    pub execution: Execution,
    /// The flag that is raised.
    pub flag: Broken,
    /// The racing events; `None` if the flag is not about a pair.
    pub pair: Option<(EventId, EventId)>,
    /// The relations that would order the pair, in either direction.
    pub missing: Vec<String>,
    /// The cheapest strengthening that removes all races.
    pub mend: Mend,
}

/// Consistent executions of a test, within the search bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executions {
    /// Name of the model.
    pub model: String,
    /// The distinguishing condition, in its canonical text.
    pub outcome: String,
    /// The executions: first those that show the outcome, then the others.
    pub found: Vec<Consistent>,
    /// True if these are all executions among the runs that end within the loop bound.
    pub complete: bool,
    /// The loop bound, if it cut some run off.
    pub cut: Option<u32>,
}

/// A consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consistent {
    /// The execution: its events and edges.
    pub execution: Execution,
    /// True if the execution shows the outcome.
    pub witness: bool,
    /// True if the execution raises a flag: a data race, hence undefined behaviour.
    pub flagged: bool,
}

/// Returns up to `most` consistent executions of a test, among the runs that end within the loop bound.
///
/// Executions that show the outcome come first. Executions that differ only in a write order that the model
/// ignores are listed separately.
///
/// # Errors
///
/// As for [`predict`].
pub fn executions(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
    most: usize,
) -> Result<Executions, PredictError> {
    let (asked, condition) = asking(test, options);
    let purse = BudgetTracker::new(options.budget);
    let unroll = options.unroll.unwrap_or(1).max(1);
    let search = Search::new(&asked, model, options, unroll, &purse)?;
    let mut found = Vec::new();
    let mut complete = true;
    for witness in [true, false] {
        let wanted = if witness { condition.clone() } else { Condition::Not(Box::new(condition.clone())) };
        let (executions, all) = search.consistent(&wanted, most.saturating_sub(found.len()))?;
        complete &= all;
        let executions = executions.into_iter();
        found.extend(executions.map(|(execution, flagged)| Consistent { execution, witness, flagged }));
    }
    Ok(Executions {
        model: model.name().to_owned(),
        outcome: condition.text(test),
        found,
        complete,
        cut: search.is_cut().then_some(unroll),
    })
}

/// Returns the test with the explained outcome as its question, and the condition.
fn asking(test: &Test, options: &ExplainOptions) -> (Test, Condition) {
    let condition = match (&options.outcome, &test.question) {
        (Some(condition), _) => condition.clone(),
        (None, Some(Question { kind: QuestionKind::Forall, condition, .. })) => {
            Condition::Not(Box::new(condition.clone()))
        }
        (None, Some(question)) => question.condition.clone(),
        (None, None) => Condition::True,
    };
    // Observables follow the question, so that every location of the outcome has a final value.
    let mut asked = test.clone();
    let span = test.question.as_ref().map_or(Span::default(), |question| question.span);
    asked.question = Some(Question { kind: QuestionKind::Exists, condition: condition.clone(), span });
    (asked, condition)
}

/// Explains an outcome of a test under a model.
///
/// ```
/// use model::{Answer, ExplainOptions, Model, explain};
///
/// let text = litmus::corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").ok_or("no such test")?.text;
/// let test = litmus::parse(text, "MP+rel-acq").map_err(|errors| errors.to_string())?;
/// let vulkan = Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
/// let explanation = explain(&test, &vulkan, &ExplainOptions::default()).map_err(|error| error.to_string())?;
/// let Answer::Forbidden { closest: Some((_, broken)), .. } = explanation.answer else { return Err("allowed".into()) };
/// assert_eq!(broken.name.as_deref(), Some("consistency"));
/// assert!(broken.edges.iter().any(|edge| edge.relation == "fr"));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// As [`predict`].
pub fn explain(test: &Test, model: &Model, options: &ExplainOptions) -> Result<Explanation, PredictError> {
    let (asked, condition) = asking(test, options);
    let verdict = Options { budget: options.verdict, unroll: options.unroll.unwrap_or(1).max(1) };
    let prediction = match options.unroll {
        Some(_) => predict(&asked, model, &verdict)?,
        None => predict_growing(&asked, model, &verdict)?,
    };
    let purse = BudgetTracker::new(options.budget);
    let mut search = Search::new(&asked, model, options, prediction.bound, &purse)?;
    let answer = match search.answer(&condition, prediction.meets)? {
        // The results of runs that were cut off at the loop bound are unknown.
        Answer::Forbidden { .. } | Answer::Impossible if prediction.cut > 0 => Answer::Unknown,
        answer => answer,
    };
    let race_found = match prediction.race {
        Race::Racy => match search.race(&condition)? {
            Some(raced) => {
                Some(raced.with(mend::mend(Goal::NoRace, &asked, model, options, prediction.bound, &purse)?))
            }
            None => None,
        },
        Race::Free | Race::Unknown => None,
    };
    let uninitialised_found =
        if prediction.uninitialised_read == Some(true) { search.uninitialised()? } else { None };
    let mended = race_found.as_ref().is_some_and(|raced| match raced.mend {
        Mend::Found { allowed, .. } => allowed == Some(false),
        Mend::None | Mend::Cut => true,
    });
    let weak = prediction.meets == Some(true)
        && prediction
            .outcomes
            .iter()
            .all(|(outcome, says)| says.weak || !outcome.meets(&asked, &prediction.observables, &condition));
    let forbids = if options.forbid && weak && !mended && prediction.complete {
        Some(mend::mend(Goal::Forbidden, &asked, model, options, prediction.bound, &purse)?)
    } else {
        None
    };
    Ok(Explanation {
        model: model.name().to_owned(),
        outcome: condition.text(test),
        answer,
        race: prediction.race,
        race_thin_air: prediction.race_thin_air,
        uninitialised_read: prediction.uninitialised_read,
        uninitialised_found,
        race_found,
        forbids,
    })
}
