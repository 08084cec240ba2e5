//! Answers that explain themselves: a witness, the rule that forbids an outcome as a cycle, a race and what mends it.

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

/// What is asked, and how much may be spent on it.
#[derive(Clone, Debug)]
pub struct ExplainOptions<'b> {
    /// The outcome to explain; where absent, the condition of the test's question, negated under `forall`.
    pub outcome: Option<Condition>,
    /// How often a loop body is run at most; as often as runs are cut off, up to 8, where nothing is said.
    pub unroll: Option<u32>,
    /// How many candidate executions are looked at for each of witness, broken rule and race.
    pub candidates: u64,
    /// What the verdict may cost; past it, it stays unknown.
    pub verdict: Budget<'b>,
    /// What the executions that show why may cost besides; past it, what is not known stays unknown.
    pub budget: Budget<'b>,
    /// Up to how many steps the cheapest mend is looked for; past them any that is not idle is taken.
    pub mend_steps: usize,
    /// How many changed programs are tried for the cheapest mend.
    pub mend_programs: usize,
    /// Whether to look for what forbids the outcome as well.
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

/// Why a model allows or forbids an outcome, and where a program races.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Name of the model.
    pub model: String,
    /// The outcome that is explained, as a condition in its canonical text.
    pub outcome: String,
    /// What the model says of it.
    pub answer: Answer,
    /// Whether the program races.
    pub race: Race,
    /// Whether it races only by values out of thin air.
    pub race_thin_air: bool,
    /// Whether some read is uninitialised; `None` where that is not known.
    pub uninitialised_read: Option<bool>,
    /// One such read, where there is one and it was found within the bounds.
    pub uninitialised_found: Option<Uninitialised>,
    /// One race, where there is one and it was found within the bounds.
    pub race_found: Option<RaceFound>,
    /// The cheapest strengthening after which nothing races and the outcome is forbidden. Looked for where that is asked, where the
    /// outcome is allowed although threads that run one after another in any order never show it, and where what mends a race does
    /// not forbid it already.
    pub forbids: Option<Mend>,
}

/// What a model says of an outcome, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Some consistent execution shows the outcome.
    Allowed {
        /// One of them; `None` where none was met within the bounds.
        witness: Option<Execution>,
    },
    /// Candidate executions show the outcome, and each breaks an axiom.
    Forbidden {
        /// The one that breaks least, and what it breaks first.
        closest: Option<(Execution, Broken)>,
        /// How many candidate executions show the outcome, as far as they were looked at.
        candidates: u64,
        /// Whether all of them were looked at.
        complete: bool,
    },
    /// No candidate execution shows the outcome: no value that is written, no path of the program leads to it.
    Impossible,
    /// Not found out within the bounds.
    Unknown,
}

/// An execution: events, and the edges that are worth drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The events: initial writes first, then thread by thread in program order, then the reads of final values.
    pub events: Vec<Event>,
    /// Relations between events; base relations first. Program order is left out, the order of the events tells it.
    pub edges: Vec<Edge>,
    /// Final values by the names of what is observed.
    pub outcome: Vec<(String, String)>,
    /// Whether some of its values depend on themselves: out of thin air.
    pub thin_air: bool,
}

/// Index of an event in [`Execution::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u16);

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is called: a letter for events of threads, `x=0` for an initial write, `final x` for a final read.
    pub label: String,
    /// Whom it belongs to.
    pub owner: EventOwner,
    /// What it is, in a word or two: `read`, `write`, `memory barrier`, …
    pub what: &'static str,
    /// Its instruction in the canonical text; empty for events that no instruction makes.
    pub text: String,
    /// Where its instruction stands.
    pub span: Span,
    /// The value read or written, with its location: `x = 1`.
    pub access: Option<String>,
}

/// Whom an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOwner {
    /// The initial state.
    Initial,
    /// An instruction of a thread: index of the thread, index of the instruction.
    Thread(usize, usize),
    /// The reader of final values.
    Final,
}

/// A pair of a relation, and why it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its source.
    pub from: EventId,
    /// Its target.
    pub to: EventId,
    /// The relation, as the model's text or the engine names it.
    pub relation: String,
    /// Which of the relation's alternatives holds; empty where there is but one.
    pub via: Option<String>,
    /// The statement of the model that says so; `None` for what executions consist of.
    pub statement: Option<Place>,
    /// The clauses that this statement, or this part of it, cites.
    pub clauses: Vec<String>,
    /// The pairs that it is made of, a level deeper.
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
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// The clauses that it cites.
    pub clauses: Vec<String>,
    /// What breaks it: the edges of a cycle in order, or of a pair that must not be. Empty for an axiom that demands
    /// that something exists.
    pub edges: Vec<Edge>,
    /// Whether the edges close a cycle.
    pub cycle: bool,
    /// The events that they join.
    pub events: Vec<EventId>,
}

/// A read of an initial value that is undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uninitialised {
    /// A consistent execution with it.
    pub execution: Execution,
    /// The read.
    pub read: EventId,
}

/// A race in some consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceFound {
    /// The execution.
    pub execution: Execution,
    /// The flag that is raised.
    pub flag: Broken,
    /// The events that race; `None` where the flag speaks of something else than a pair.
    pub pair: Option<(EventId, EventId)>,
    /// The relations any of which would have to join the pair, in either direction.
    pub missing: Vec<String>,
    /// The cheapest strengthening after which nothing races.
    pub mend: Mend,
}

/// Consistent executions of a test, as far as they were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executions {
    /// Name of the model.
    pub model: String,
    /// What the executions are told apart by, as a condition in its canonical text.
    pub outcome: String,
    /// Those that show it, then the others.
    pub found: Vec<Consistent>,
    /// Whether there are no more among the runs that end within the bound of loops.
    pub complete: bool,
    /// The bound of loops where it cut some run off.
    pub cut: Option<u32>,
}

/// A consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consistent {
    /// What it is.
    pub execution: Execution,
    /// Whether it shows the outcome.
    pub witness: bool,
    /// Whether it raises a flag: the program races, and is undefined.
    pub flagged: bool,
}

/// Up to `most` consistent executions of a test whose runs end within the bound of loops; those first that show the outcome.
/// Orders of writes that the model does not speak of are told apart.
///
/// # Errors
/// As [`predict`].
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

/// The test with the question about what is explained, and its condition.
fn asking(test: &Test, options: &ExplainOptions) -> (Test, Condition) {
    let condition = match (&options.outcome, &test.question) {
        (Some(condition), _) => condition.clone(),
        (None, Some(Question { kind: QuestionKind::Forall, condition, .. })) => {
            Condition::Not(Box::new(condition.clone()))
        }
        (None, Some(question)) => question.condition.clone(),
        (None, None) => Condition::True,
    };
    // What is observed follows the question, so that locations of the outcome have a final value.
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
        // What runs show that were cut off at the bound of loops is not known.
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
