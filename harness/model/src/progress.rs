//! Forward progress: which programs end under which progress model.
//!
//! A *hang* is an infinite run that keeps every promise of the progress model, or a state in which everybody left waits.
//! The states of the program form a finite graph (registers that no longer matter are forgotten); an infinite run ends up
//! in a strongly connected part of it. Under weak fairness such a part is a hang if everyone who is owed progress there
//! takes a step there or waits; under strong fairness nobody who is owed a step may be able to leave it either.
//!
//! Memory is first taken as sequentially consistent: such a hang is one under every model here, and with one shared
//! location there is nothing weaker. Where several are shared and the program ends, the graph is made again over weak
//! memory, and the memory model is asked whether threads may spin for ever on what its axioms let them read. Two assumptions that Vulkan does not make stand behind every answer: the progress model, and that writes become
//! visible in the end. So an answer reads "ends under obe", never "Vulkan guarantees".
//!
//! Sources: Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models" (OOPSLA 2021); the notion of levels
//! follows Dartagnan's.

mod axioms;
mod code;
mod graph;
mod machine;
mod promise;
mod relaxed;
mod split;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use litmus::{Test, ThreadId, Value};

pub use promise::{PROMISES, ProgressModel, ProgressModelError, Promise};

use crate::{Budget, Model, Options, PredictError};
use axioms::Answer;
use code::{Code, Operation};
use graph::{Edge, Graph, Trap};
use machine::{Flat, Machine};
use promise::{Definition, Group};
use relaxed::{HISTORY, Histories};

/// What a promise of progress is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// Whoever is owed progress takes infinitely many steps or ends.
    #[default]
    Weak,
    /// And a step that is possible again and again is taken.
    Strong,
}

impl Fairness {
    /// Its name, as `--fairness` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Fairness::Weak => "weak",
            Fairness::Strong => "strong",
        }
    }
}

/// The memory over which an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Sequential consistency.
    SequentiallyConsistent,
    /// Histories of writes with synchronization by release and acquire.
    Relaxed,
    /// The axioms of the memory model.
    Axioms,
}

impl Memory {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Memory::SequentiallyConsistent => "sc",
            Memory::Relaxed => "relaxed",
            Memory::Axioms => "axioms",
        }
    }
}

/// Bounds of a search.
#[derive(Clone, Debug)]
pub struct Limits<'b> {
    /// States of a graph at most.
    pub states: usize,
    /// What each graph and each question to the axioms may cost.
    pub budget: Budget<'b>,
}

impl<'b> Limits<'b> {
    /// The default bound on states and a budget.
    pub fn within(budget: Budget<'b>) -> Limits<'b> {
        Limits { budget, ..Limits::default() }
    }

    fn options(&self) -> Options<'b> {
        Options { budget: self.budget, unroll: 1 }
    }
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits { states: 200_000, budget: Budget::UNLIMITED }
    }
}

/// Why there is no answer, or no question.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// A control barrier whose instance is computed as the program runs.
    #[error("the id `{id}` of a control barrier is computed: only numbers are supported with `--progress`")]
    ComputedBarrier {
        /// The id.
        id: String,
    },
    /// Something that waits by rules of its own.
    #[error("{what} are not available with `--progress`")]
    Unsupported {
        /// What it is.
        what: &'static str,
    },
    /// More threads than the bound.
    #[error("{threads} threads, with a bound of {bound} for `--progress`")]
    TooManyThreads {
        /// How many there are.
        threads: usize,
        /// The bound.
        bound: usize,
    },
    /// More states than the bound.
    #[error("more than {bound} states")]
    TooManyStates {
        /// The bound.
        bound: usize,
    },
    /// A thread computes for long without a step.
    #[error("more than {bound} instructions of one thread without an access to memory")]
    LongLocalLoop {
        /// The bound.
        bound: usize,
    },
    /// A test that no parser makes: something in it refers to what is not there.
    #[error("internal: {what}")]
    Internal {
        /// What refers to nothing.
        what: &'static str,
    },
    /// The time was over.
    #[error("not decided in time")]
    OutOfTime,
    /// The memory model has no answer.
    #[error(transparent)]
    Predict(#[from] PredictError),
}

impl ProgressError {
    /// Whether the test was understood and only the search was cut short.
    pub fn is_bound(&self) -> bool {
        use ProgressError::{LongLocalLoop, OutOfTime, TooManyStates};
        matches!(self, TooManyStates { .. } | LongLocalLoop { .. } | OutOfTime)
    }
}

/// Whether a program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The memory that decided.
    pub memory: Memory,
    /// Whether every run ends; nothing where a bound was met first.
    pub terminates: Option<bool>,
    /// How it hangs, why nothing is known, or within which bound of weak memory it ends.
    pub why: Option<String>,
    /// A run that hangs, step by step; empty where there is none.
    pub schedule: Vec<Turn>,
}

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread.
    pub thread: ThreadId,
    /// Index of its instruction.
    pub instruction: u16,
    /// The value read.
    pub read: Option<Value>,
    /// The value written.
    pub written: Option<Value>,
    /// True for the steps that repeat for ever.
    pub repeats: bool,
}

/// Decides whether every run of `test` ends under a progress model and a memory model. Conditions and filters have no say
/// in it.
///
/// The machine over histories stands for the models of Vulkan and HSA; it is left out under others, and under `sc` nothing
/// weaker than interleavings is asked for.
///
/// # Errors
///
/// A program that cannot be asked about; a search that met a bound is no error but an answer without `terminates`.
///
/// # Examples
///
/// ```
/// use model::progress::{Fairness, Limits, ProgressModel, terminates};
///
/// let test = litmus::parse(
///     r#"VULKAN handoff-down
/// { x = 0; }
/// P0@sg 0, wg 0, qf 0      | P1@sg 0, wg 1, qf 0  ;
/// LC00:                    | st.atom.dv.sc0 x, 1  ;
/// ld.atom.dv.sc0 r0, x     |                      ;
/// beq r0, 0, LC00          |                      ;
/// exists (P0:r0 == 1)"#,
///     "handoff-down",
/// )
/// .map_err(|errors| errors.to_string())?;
/// let vulkan = model::Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
/// let under = |name: &str| -> Result<Option<bool>, String> {
///     let model = name.parse::<ProgressModel>().map_err(|error| format!("{error}"))?;
///     let answer = terminates(&test, &vulkan, &model, Fairness::Weak, &Limits::default());
///     answer.map(|answer| answer.terminates).map_err(|error| error.to_string())
/// };
/// assert_eq!(under("fair")?, Some(true));
/// assert_eq!(under("obe")?, Some(false), "P1 may never be started");
/// # Ok::<(), String>(())
/// ```
pub fn terminates(
    test: &Test,
    memory_model: &Model,
    model: &ProgressModel,
    fairness: Fairness,
    limits: &Limits,
) -> Result<Termination, ProgressError> {
    let mut answers = terminates_under(test, memory_model, &[*model], fairness, limits)?;
    answers.pop().ok_or(ProgressError::OutOfTime)
}

/// [`terminates`] under several progress models, which share their graphs: an answer for each, in order.
///
/// # Errors
///
/// A program that cannot be asked about.
pub fn terminates_under(
    test: &Test,
    memory_model: &Model,
    models: &[ProgressModel],
    fairness: Fairness,
    limits: &Limits,
) -> Result<Vec<Termination>, ProgressError> {
    by_definition(test, memory_model, models, Definition::STANDARD, fairness, limits)
}

fn by_definition(
    test: &Test,
    memory_model: &Model,
    models: &[ProgressModel],
    definition: Definition,
    fairness: Fairness,
    limits: &Limits,
) -> Result<Vec<Termination>, ProgressError> {
    let code = Code::of(test)?;
    let threads = Group::of(test);
    let machine = Machine { code: &code };
    let flat = match Graph::explore(&machine, Flat(code.initial.clone()), limits) {
        Ok(graph) => graph,
        Err(error) => return unknown(Memory::SequentiallyConsistent, error, models.len()),
    };
    let asked = Asked { test, code: &code, threads: &threads, definition, fairness };
    let mut answers: Vec<Option<Termination>> =
        models.iter().map(|model| asked.hang(&flat, model, Memory::SequentiallyConsistent)).collect();
    let ends = |memory| Termination { memory, terminates: Some(true), why: None, schedule: Vec::new() };
    let mut memory = Memory::SequentiallyConsistent;
    let mut limits_of_answer: Option<String> = None;
    if answers.iter().any(Option::is_none) && memory_model.name() != "sc" && shares_several(&code) {
        if has_histories(memory_model) {
            memory = Memory::Relaxed;
            match Graph::explore(&machine, Histories::new(&code), limits) {
                Ok(graph) => {
                    limits_of_answer = graph.cut.then(|| format!("within histories of {HISTORY} writes"));
                    for (answer, model) in answers.iter_mut().zip(models) {
                        *answer = answer.take().or_else(|| asked.hang(&graph, model, memory));
                    }
                }
                Err(error) => {
                    let unknown = unknown(memory, error, 1)?;
                    for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                        *answer = unknown.first().cloned();
                    }
                }
            }
        }
        let undecided = |answer: &&mut Option<Termination>| {
            answer.as_ref().is_none_or(|answer| answer.terminates.is_none())
        };
        if answers.iter_mut().any(|answer| undecided(&answer)) {
            let found = axioms::ask(test, &code, memory_model, &limits.options())?;
            for answer in answers.iter_mut().filter(undecided) {
                match &found {
                    Answer::Hang(spins) => *answer = Some(asked.spinning(spins)),
                    Answer::Ends if answer.is_none() => *answer = Some(ends(Memory::Axioms)),
                    Answer::Unknown if answer.is_none() && !has_histories(memory_model) => {
                        *answer = Some(Termination {
                            memory: Memory::Axioms,
                            terminates: None,
                            why: Some(format!(
                                "ends under sequential consistency, and a loop that writes is not decided under {}",
                                memory_model.name()
                            )),
                            schedule: Vec::new(),
                        });
                    }
                    Answer::Ends | Answer::Unknown => {}
                }
            }
        }
    }
    let bounded = || Termination { why: limits_of_answer.clone(), ..ends(memory) };
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(bounded)).collect())
}

/// Where a thread stood while a device was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// It had taken a step before.
    pub started: bool,
    /// It had come to its end.
    pub ended: bool,
    /// It waited in a control barrier.
    pub waits: bool,
    /// It took steps.
    pub moved: bool,
}

/// What the copies of a test are, where several run in one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Workgroups of the dispatch.
    Workgroups,
    /// Subgroups of the workgroup.
    Subgroups,
    /// Invocations of the subgroup.
    Invocations,
}

/// Whether what was watched for a while could go on for ever under a progress model: whoever is owed progress moved, had
/// ended or waited in a barrier. What breaks a promise for long refutes that a device keeps it.
///
/// `watched` has an entry for each thread of the test, in their order; one that is missing stands for a thread that ended.
/// Where copies of the test run beside it, one of them may be who goes on where a group owes nobody in particular.
pub fn keeps_promises(
    test: &Test,
    model: &ProgressModel,
    watched: &[Watched],
    beside: Option<Beside>,
) -> bool {
    let beside = beside.map(|beside| match beside {
        Beside::Workgroups => promise::Level::QueueFamily,
        Beside::Subgroups => promise::Level::Workgroup,
        Beside::Invocations => promise::Level::Subgroup,
    });
    let definition = Definition { beside, ..Definition::STANDARD };
    let gone = Watched { started: true, ended: true, waits: false, moved: false };
    let of = |thread: usize| watched.get(thread).copied().unwrap_or(gone);
    let standing = |thread: usize| {
        let seen = of(thread);
        promise::Standing {
            ended: seen.ended,
            started: seen.started,
            schedulable: !seen.ended && !seen.waits,
        }
    };
    Group::of(test).kept(model, definition, &standing, &|thread| of(thread).moved)
}

/// Whether every step of the machine over histories is one that the model allows.
fn has_histories(memory_model: &Model) -> bool {
    ["vulkan", "khronos-alloy", "dartagnan", "hsa"]
        .iter()
        .any(|name| memory_model.name().split('-').next() == name.split('-').next())
}

/// The same lack of an answer for each model.
fn unknown(memory: Memory, error: ProgressError, count: usize) -> Result<Vec<Termination>, ProgressError> {
    if !error.is_bound() {
        return Err(error);
    }
    let answer = Termination { memory, terminates: None, why: Some(error.to_string()), schedule: Vec::new() };
    Ok(vec![answer; count])
}

/// Whether two threads or more share two storages or more: with one, coherence alone makes accesses sequential.
fn shares_several(code: &Code) -> bool {
    code.users.iter().filter(|users| users.count_ones() > 1).count() > 1
}

/// What stays the same from graph to graph.
struct Asked<'a> {
    test: &'a Test,
    code: &'a Code,
    threads: &'a Group,
    definition: Definition,
    fairness: Fairness,
}

impl Asked<'_> {
    /// A hang of a graph.
    fn hang(&self, graph: &Graph, model: &ProgressModel, memory: Memory) -> Option<Termination> {
        if let Some(stuck) = graph.stuck {
            let path = graph.path_to(stuck);
            let why = self.why_stuck(graph, stuck);
            let schedule = path.iter().map(|edge| self.turn(&graph.edges[*edge as usize], false)).collect();
            return Some(Termination { memory, terminates: Some(false), why: Some(why), schedule });
        }
        let trap = graph.trap(self.threads, model, self.definition, self.fairness)?;
        // The state that was found first is the nearest.
        let entry = trap.states.first().copied()?;
        let mut schedule: Vec<Turn> =
            graph.path_to(entry).iter().map(|edge| self.turn(&graph.edges[*edge as usize], false)).collect();
        let round = graph.round(&trap, entry);
        schedule.extend(round.iter().map(|edge| self.turn(&graph.edges[*edge as usize], true)));
        let why = self.why_trapped(graph, &trap, entry);
        Some(Termination { memory, terminates: Some(false), why: Some(why), schedule })
    }

    fn turn(&self, edge: &Edge, repeats: bool) -> Turn {
        Turn {
            thread: ThreadId(edge.thread),
            instruction: edge.at,
            read: edge.read.map(Value),
            written: edge.written.map(Value),
            repeats,
        }
    }

    /// A hang that the axioms allow. An execution has no order of steps to show.
    fn spinning(&self, spins: &[(usize, u32)]) -> Termination {
        let mut why = "may hang (loop):".to_owned();
        for (index, (thread, line)) in spins.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(why, "{comma} {} repeats the loop that ends at line {line}", self.name(*thread));
        }
        Termination { memory: Memory::Axioms, terminates: Some(false), why: Some(why), schedule: Vec::new() }
    }

    fn why_stuck(&self, graph: &Graph, state: u32) -> String {
        let mut why = "may hang (barrier):".to_owned();
        let mut separator = " ";
        for (thread, place) in graph.places(state).iter().enumerate() {
            let operations = &self.code.threads[thread].operations;
            match operations.get(usize::from(*place)) {
                None => continue,
                Some(Operation::Barrier { .. } | Operation::Split { .. }) => {
                    let _ = write!(
                        why,
                        "{separator}{} waits at {}",
                        self.name(thread),
                        self.line(thread, *place)
                    );
                }
                Some(_) => {
                    let _ = write!(why, "{separator}{} waits for a thread before it", self.name(thread));
                }
            }
            separator = ", ";
        }
        why
    }

    fn why_trapped(&self, graph: &Graph, trap: &Trap, entry: u32) -> String {
        let mut why = "may hang (loop):".to_owned();
        let mut separator = " ";
        for (thread, standing) in graph.standings(entry).iter().enumerate() {
            let mut places: Vec<u16> = trap
                .edges
                .iter()
                .map(|edge| &graph.edges[*edge as usize])
                .filter(|edge| usize::from(edge.thread) == thread)
                .map(|edge| edge.at)
                .collect();
            places.sort_unstable();
            places.dedup();
            let name = self.name(thread);
            let place = graph.places(entry)[thread];
            let says = if !places.is_empty() {
                let lines: Vec<String> = places.iter().map(|place| self.line(thread, *place)).collect();
                format!("{name} repeats {}", lines.join(", "))
            } else if usize::from(place) >= self.code.threads[thread].operations.len() {
                continue;
            } else if !standing.schedulable {
                format!("{name} waits at {}", self.line(thread, place))
            } else if standing.started {
                format!("{name} does not go on from {}", self.line(thread, place))
            } else {
                format!("{name} is never started")
            };
            let _ = write!(why, "{separator}{says}");
            separator = ", ";
        }
        why
    }

    fn name(&self, thread: usize) -> String {
        format!("P{}", self.test.threads[thread].number)
    }

    fn line(&self, thread: usize, place: u16) -> String {
        let instruction = self.test.threads[thread].instructions.get(usize::from(place));
        instruction.map_or_else(|| "its end".to_owned(), |i| format!("line {}", i.span.line))
    }
}
