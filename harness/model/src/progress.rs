//! Forward progress: decides which programs terminate under which progress model.
//!
//! A *hang* is an infinite run that satisfies the progress model, or a state in which every remaining thread
//! waits. The states of the program form a finite graph; dead registers are dropped from them. An infinite
//! run ends in a strongly connected subgraph. Under weak fairness, the subgraph is a hang if every thread
//! that the model guarantees progress steps or waits in it. Under strong fairness, in addition no such thread
//! may be able to leave it.
//!
//! Memory is first sequentially consistent. Such a hang is a hang under every model here, and with one shared
//! location no weaker behaviour exists. If several locations are shared and the program terminates, the graph
//! is built again over weak memory. The memory model then decides if threads may spin forever on the values
//! that its axioms permit. Every answer rests on two assumptions that Vulkan does not make: the progress
//! model, and that writes become visible eventually. So an answer reads "ends under obe", never "Vulkan
//! guarantees".
//!
//! Sources: Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models" (OOPSLA 2021); the levels
//! follow Dartagnan.

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

/// The fairness that a progress guarantee implies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// A thread with guaranteed progress takes infinitely many steps or ends.
    #[default]
    Weak,
    /// As weak fairness; in addition, a step that is enabled infinitely often is taken.
    Strong,
}

impl Fairness {
    /// Returns the name that `--fairness` takes.
    pub fn name(self) -> &'static str {
        match self {
            Fairness::Weak => "weak",
            Fairness::Strong => "strong",
        }
    }
}

/// The memory semantics of an answer.
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
    /// Limit of states of a graph.
    pub states: usize,
    /// Budget of each graph and each query to the axioms.
    pub budget: Budget<'b>,
}

impl<'b> Limits<'b> {
    /// The default limit of states, with a budget.
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

/// The reason that a termination query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// A control barrier whose instance is computed as the program runs.
    #[error("the id `{id}` of a control barrier is computed: only numbers are supported with `--progress`")]
    ComputedBarrier {
        /// The id.
        id: String,
    },
    /// An operation that waits by rules that progress analysis does not model.
    #[error("{what} are not available with `--progress`")]
    Unsupported {
        /// The operation.
        what: &'static str,
    },
    /// More threads than the limit.
    #[error("{threads} threads, with a bound of {bound} for `--progress`")]
    TooManyThreads {
        /// Number of threads.
        threads: usize,
        /// The bound.
        bound: usize,
    },
    /// More states than the limit.
    #[error("more than {bound} states")]
    TooManyStates {
        /// The bound.
        bound: usize,
    },
    /// A thread executes too many instructions without a step.
    #[error("more than {bound} instructions of one thread without an access to memory")]
    LongLocalLoop {
        /// The bound.
        bound: usize,
    },
    /// An inconsistent test that no parser produces.
    #[error("internal: {what}")]
    Internal {
        /// The undefined reference.
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
    /// Returns true if the test is supported and only a search bound was exceeded.
    pub fn is_bound(&self) -> bool {
        use ProgressError::{LongLocalLoop, OutOfTime, TooManyStates};
        matches!(self, TooManyStates { .. } | LongLocalLoop { .. } | OutOfTime)
    }
}

/// The answer of a termination query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The memory that decided.
    pub memory: Memory,
    /// True if every run ends; `None` if a bound was exceeded first.
    pub terminates: Option<bool>,
    /// The form of the hang, the reason that the answer is unknown, or the bound of weak memory within which
    /// it ends.
    pub why: Option<String>,
    /// A run that hangs, step by step; empty if there is none.
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
    /// True for the steps that repeat forever.
    pub repeats: bool,
}

/// Decides if every run of `test` terminates under a progress model and a memory model.
///
/// Conditions and filters have no effect. The machine over histories represents the models of Vulkan and HSA;
/// it is not used for other models. Under `sc` only interleavings are explored.
///
/// # Errors
///
/// If the program is not supported. A search that exceeds a bound returns an answer without `terminates`.
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

/// Answers [`terminates`] for several progress models that share their graphs; one answer each, in order.
///
/// # Errors
///
/// If the program is not supported.
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

/// The position of a thread while a device was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// True if the thread had taken a step before.
    pub started: bool,
    /// It had come to its end.
    pub ended: bool,
    /// True if the thread waits in a control barrier.
    pub waits: bool,
    /// It took steps.
    pub moved: bool,
}

/// The relation between several copies of a test in one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Workgroups of the dispatch.
    Workgroups,
    /// Subgroups of the workgroup.
    Subgroups,
    /// Invocations of the subgroup.
    Invocations,
}

/// Returns true if the observed behaviour could continue forever under a progress model.
///
/// Each thread with guaranteed progress must have moved, ended, or waited in a barrier. A violation that
/// lasts refutes the guarantee for the device.
///
/// `watched` has one entry per thread of the test, in order; a missing entry means that the thread ended. If
/// copies of the test run at the same time, a thread of a copy may satisfy a guarantee that a group owes to
/// no particular thread.
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

/// Returns true if the model permits every step of the machine over histories.
fn has_histories(memory_model: &Model) -> bool {
    ["vulkan", "khronos-alloy", "dartagnan", "hsa"]
        .iter()
        .any(|name| memory_model.name().split('-').next() == name.split('-').next())
}

/// Returns the same unknown answer for each model.
fn unknown(memory: Memory, error: ProgressError, count: usize) -> Result<Vec<Termination>, ProgressError> {
    if !error.is_bound() {
        return Err(error);
    }
    let answer = Termination { memory, terminates: None, why: Some(error.to_string()), schedule: Vec::new() };
    Ok(vec![answer; count])
}

/// Returns true if at least two threads share at least two storages. With one storage, coherence alone makes
/// accesses sequential.
fn shares_several(code: &Code) -> bool {
    code.users.iter().filter(|users| users.count_ones() > 1).count() > 1
}

/// The data shared by all graphs of a query.
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
        // The state found first is the nearest.
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

    /// A hang that the axioms permit. An execution has no order of steps to print.
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
