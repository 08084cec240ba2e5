//! Decides termination under forward-progress models.
//!
//! A *hang* is an infinite run that satisfies the progress model, or a state in which every unfinished thread
//! waits. The states of the program form a finite graph, because dead registers are cleared. Every infinite
//! run ends in a strongly connected component of it. Under weak fairness, a component is a hang if every
//! thread with a progress obligation takes a step in it or waits. Under strong fairness, no such thread may
//! also have a step that leaves the component.
//!
//! The search starts with sequential consistency. Its hangs exist under every model here, and with one shared
//! location no model is weaker. If several locations are shared and the program terminates, the search
//! repeats over weak memory (`relaxed`). In addition, it queries the axioms for spin loops that never end
//! (`axioms`).
//!
//! Every answer rests on two assumptions that Vulkan does not make: the progress model, and eventual
//! visibility of writes. Reports therefore read "ends under obe", never "Vulkan guarantees".
//!
//! Sources: Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models" (OOPSLA 2021),
//! <https://doi.org/10.1145/3485508>. The hierarchy of levels follows Dartagnan.

mod axioms;
mod code;
mod graph;
mod guarantee;
mod machine;
mod relaxed;
mod split_barrier;

#[cfg(feature = "testing")]
use std::collections::HashSet;

#[cfg(feature = "testing")]
use litmus::Outcome;
use litmus::{Test, ThreadId, Value, closed_enum};

pub use guarantee::{
    HierarchyLevel, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressModel, ProgressModelError,
    ProgressSemantics, ThreadStatus,
};

use crate::{Budget, Model, PredictError, PredictOptions};
use axioms::SpinAnswer;
use code::{ProgressCode, ProgressOperation};
use graph::{FairComponent, StateGraph, Transition};
use guarantee::ThreadTree;
use machine::{FlatMemory, ProgressMachine};
use relaxed::{HISTORY, StoreHistories};

closed_enum! {
    /// Fairness assumption on progress obligations.
    #[derive(Default)]
    pub enum Fairness {
        /// A thread with a progress obligation takes infinitely many steps or ends.
        #[default]
        Weak = "weak",
        /// As weak fairness; in addition, a step that is enabled infinitely often is taken.
        Strong = "strong",
    }

    /// The memory semantics of an answer.
    pub enum DecidingMemory {
        SequentiallyConsistent = "sc",
        /// Histories of writes with synchronization by release and acquire.
        Relaxed = "relaxed",
        Axioms = "axioms",
    }
}

/// Bounds of a search.
#[derive(Clone, Debug)]
pub struct ProgressLimits<'b> {
    /// Bound on the states of a graph.
    pub max_states: usize,
    /// Budget of each graph and each query of the axioms.
    pub budget: Budget<'b>,
}

impl<'b> ProgressLimits<'b> {
    /// The default limit of states, with a budget.
    pub fn with_budget(budget: Budget<'b>) -> ProgressLimits<'b> {
        ProgressLimits { budget, ..ProgressLimits::default() }
    }

    fn predict_options(&self) -> PredictOptions<'b> {
        PredictOptions { budget: self.budget, unroll: 1 }
    }
}

impl Default for ProgressLimits<'_> {
    fn default() -> Self {
        ProgressLimits { max_states: 200_000, budget: Budget::UNLIMITED }
    }
}

/// The reason that a termination query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    #[error("the id `{id}` of a control barrier is computed: only numbers are supported with `--progress`")]
    ComputedBarrier { id: String },
    #[error("{what} are not available with `--progress`")]
    Unsupported {
        /// Name of the operation.
        what: &'static str,
    },
    #[error("{threads} threads; `--progress` supports at most {bound}")]
    TooManyThreads { threads: usize, bound: usize },
    #[error("more than {bound} states")]
    TooManyStates { bound: usize },
    #[error("more than {bound} instructions of one thread without an access to memory")]
    LongLocalLoop { bound: usize },
    /// An inconsistent test that no parser produces.
    #[error("internal: {what}")]
    Internal {
        /// The dangling reference.
        what: &'static str,
    },
    #[error("not decided in time")]
    OutOfTime,
    /// The memory model has no answer.
    #[error(transparent)]
    Predict(#[from] PredictError),
}

impl ProgressError {
    /// Returns true if the test was understood and only the search was cut short.
    pub fn is_bound_reached(&self) -> bool {
        use ProgressError::{LongLocalLoop, OutOfTime, TooManyStates};
        matches!(self, TooManyStates { .. } | LongLocalLoop { .. } | OutOfTime)
    }
}

/// Answer to a termination query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    pub memory: DecidingMemory,
    /// True if every run ends; `None` if a bound was reached first.
    pub terminates: Option<bool>,
    /// Description of the hang, reason for an unknown answer, or bound of weak memory.
    pub details: Option<String>,
    /// A hanging run, step by step; empty if none was found.
    pub schedule: Vec<ProgressStep>,
}

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressStep {
    pub thread: ThreadId,
    /// Index of its instruction.
    pub instruction: u16,
    pub read: Option<Value>,
    pub written: Option<Value>,
    /// True for the steps that repeat forever.
    pub repeats: bool,
}

/// Decides whether every run of `test` ends under a progress model and a memory model. Conditions and filters are ignored.
///
/// The machine over histories covers the models of Vulkan and HSA, and is not used for others. For `sc`, only interleavings
/// are explored.
///
/// # Errors
///
/// If the program is not supported. A search that reaches a bound returns an answer without `terminates`.
///
/// # Examples
///
/// ```
/// use model::progress::{Fairness, ProgressLimits, ProgressModel, check_termination};
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
///     let answer = check_termination(&test, &vulkan, &model, Fairness::Weak, &ProgressLimits::default());
///     answer.map(|answer| answer.terminates).map_err(|error| error.to_string())
/// };
/// assert_eq!(under("fair")?, Some(true));
/// assert_eq!(under("obe")?, Some(false), "P1 may never be started");
/// # Ok::<(), String>(())
/// ```
pub fn check_termination(
    test: &Test,
    memory_model: &Model,
    model: &ProgressModel,
    fairness: Fairness,
    limits: &ProgressLimits,
) -> Result<Termination, ProgressError> {
    let mut answers = check_termination_under(test, memory_model, &[*model], fairness, limits)?;
    answers.pop().ok_or(ProgressError::OutOfTime)
}

/// Decides termination under several progress models, which share their graphs. The result is in input order.
///
/// # Errors
///
/// An unsupported program.
pub fn check_termination_under(
    test: &Test,
    memory_model: &Model,
    models: &[ProgressModel],
    fairness: Fairness,
    limits: &ProgressLimits,
) -> Result<Vec<Termination>, ProgressError> {
    decide_termination(test, memory_model, models, ProgressSemantics::STANDARD, fairness, limits)
}

/// As [`check_termination_under`], with other semantics of the progress models.
pub fn decide_termination(
    test: &Test,
    memory_model: &Model,
    models: &[ProgressModel],
    semantics: ProgressSemantics,
    fairness: Fairness,
    limits: &ProgressLimits,
) -> Result<Vec<Termination>, ProgressError> {
    let code = ProgressCode::from_test(test, false)?;
    let threads = ThreadTree::from_test(test);
    let machine = ProgressMachine { code: &code };
    let sequential_graph =
        match StateGraph::explore_states(&machine, FlatMemory(code.initial.clone()), limits) {
            Ok(graph) => graph,
            Err(error) => {
                return unknown_answers(DecidingMemory::SequentiallyConsistent, error, models.len());
            }
        };
    let query = TerminationQuery { test, code: &code, threads: &threads, semantics, fairness };
    let mut answers: Vec<Option<Termination>> = models
        .iter()
        .map(|model| query.find_hang(&sequential_graph, model, DecidingMemory::SequentiallyConsistent))
        .collect();
    let new_terminating =
        |memory| Termination { memory, terminates: Some(true), details: None, schedule: Vec::new() };
    let mut memory = DecidingMemory::SequentiallyConsistent;
    let mut limits_of_answer: Option<String> = None;
    // A hang under sequential consistency is a hang under every weaker memory, so only the models
    // without one need a weaker machine.
    if answers.iter().any(Option::is_none) && memory_model.name() != "sc" && shares_several_storages(&code) {
        if has_histories(memory_model) {
            memory = DecidingMemory::Relaxed;
            match StateGraph::explore_states(&machine, StoreHistories::new(&code), limits) {
                Ok(graph) => {
                    limits_of_answer =
                        graph.is_truncated.then(|| format!("within histories of {HISTORY} writes"));
                    for (answer, model) in answers.iter_mut().zip(models) {
                        *answer = answer.take().or_else(|| query.find_hang(&graph, model, memory));
                    }
                }
                Err(error) => {
                    let unknown = unknown_answers(memory, error, 1)?;
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
            // A spin that the axioms permit satisfies every progress model, so one query answers
            // for all of them.
            let found = axioms::decide_spin_hang(test, &code, memory_model, &limits.predict_options())?;
            for answer in answers.iter_mut().filter(undecided) {
                match &found {
                    SpinAnswer::Hang(spins) => *answer = Some(query.describe_spinning(spins)),
                    SpinAnswer::Ends if answer.is_none() => {
                        *answer = Some(new_terminating(DecidingMemory::Axioms))
                    }
                    // The machine over histories has not run for this model, so only the sequential
                    // search supports "terminates".
                    SpinAnswer::Unknown if answer.is_none() && !has_histories(memory_model) => {
                        *answer = Some(Termination {
                            memory: DecidingMemory::Axioms,
                            terminates: None,
                            details: Some(format!(
                                "terminates under sequential consistency; a loop that writes is undecided under {}",
                                memory_model.name()
                            )),
                            schedule: Vec::new(),
                        });
                    }
                    SpinAnswer::Ends | SpinAnswer::Unknown => {}
                }
            }
        }
    }
    let terminating_within_bounds =
        || Termination { details: limits_of_answer.clone(), ..new_terminating(memory) };
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(terminating_within_bounds)).collect())
}

/// Returns the outcomes of all interleavings that end; with `is_serial`, of those that run each thread without a break.
///
/// Shares no code with the axiomatic engine: tests compare the models `sc` and `serial` with it.
///
/// # Errors
///
/// An unsupported program.
#[cfg(feature = "testing")]
pub fn machine_outcomes(test: &Test, is_serial: bool) -> Result<HashSet<Outcome>, ProgressError> {
    let code = ProgressCode::from_test(test, true)?;
    let machine = ProgressMachine { code: &code };
    let initial = (machine.initial_state(FlatMemory(code.initial.clone()))?, None);
    let mut visited = HashSet::from([initial.clone()]);
    let (mut open, mut outcomes) = (vec![initial], HashSet::new());
    while let Some((state, running)) = open.pop() {
        if (0..test.threads.len()).all(|thread| machine.has_ended(&state, thread)) {
            let observables = test.observables().into_iter();
            let values = observables.map(|observable| machine.observed_value(test, &state, observable));
            outcomes.insert(Outcome(values.collect()));
        }
        for step in machine.enabled_steps(&state)? {
            let is_next = |running| running == step.thread || machine.has_ended(&state, running);
            let next = (step.state.clone(), Some(step.thread).filter(|_| is_serial));
            if running.is_none_or(is_next) && visited.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Ok(outcomes)
}

/// Observed status of a thread on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedThread {
    /// True if the thread had taken a step before.
    pub started: bool,
    /// True if the thread had ended.
    pub ended: bool,
    /// True if the thread waits in a control barrier.
    pub is_waiting: bool,
    /// True if the thread took steps.
    pub moved: bool,
}

/// Level of the test's copies, if several run in one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLevel {
    Workgroups,
    Subgroups,
    /// Invocations of the subgroup.
    Invocations,
}

/// Returns true if an observed period could repeat for ever under a progress model.
///
/// That requires every thread with an obligation to have moved, ended or waited in a barrier. A long
/// violation refutes that a device satisfies the model.
///
/// `observed_threads` has an entry for each thread of the test, in order; a missing entry means an ended thread. If
/// copies of the test run in the same dispatch, a copy may satisfy an obligation that names no particular
/// member.
pub fn satisfies_progress_model(
    test: &Test,
    model: &ProgressModel,
    observed_threads: &[ObservedThread],
    copy_level: Option<CopyLevel>,
) -> bool {
    let open_level = copy_level.map(|beside| match beside {
        CopyLevel::Workgroups => guarantee::HierarchyLevel::QueueFamily,
        CopyLevel::Subgroups => guarantee::HierarchyLevel::Workgroup,
        CopyLevel::Invocations => guarantee::HierarchyLevel::Subgroup,
    });
    let semantics = ProgressSemantics { open_level, ..ProgressSemantics::STANDARD };
    let ended_thread = ObservedThread { started: true, ended: true, is_waiting: false, moved: false };
    let observed_thread = |thread: usize| observed_threads.get(thread).copied().unwrap_or(ended_thread);
    let status = |thread: usize| {
        let observed = observed_thread(thread);
        guarantee::ThreadStatus {
            ended: observed.ended,
            started: observed.started,
            schedulable: !observed.ended && !observed.is_waiting,
        }
    };
    ThreadTree::from_test(test)
        .satisfies_guarantees(model, semantics, &status, &|thread| observed_thread(thread).moved)
}

/// Returns true if every step of the machine over histories is one that the model allows.
fn has_histories(memory_model: &Model) -> bool {
    ["vulkan", "khronos-alloy", "dartagnan", "hsa"]
        .iter()
        .any(|name| memory_model.name().split('-').next() == name.split('-').next())
}

/// Returns the same unknown answer for each model.
fn unknown_answers(
    memory: DecidingMemory,
    error: ProgressError,
    count: usize,
) -> Result<Vec<Termination>, ProgressError> {
    if !error.is_bound_reached() {
        return Err(error);
    }
    let answer =
        Termination { memory, terminates: None, details: Some(error.to_string()), schedule: Vec::new() };
    Ok(vec![answer; count])
}

/// Returns true if two threads or more share two storages or more: with one, coherence makes accesses
/// sequential.
fn shares_several_storages(code: &ProgressCode) -> bool {
    code.accessing_threads.iter().filter(|users| users.count_ones() > 1).count() > 1
}

/// Inputs that all graphs of a query share.
struct TerminationQuery<'a> {
    test: &'a Test,
    code: &'a ProgressCode,
    threads: &'a ThreadTree,
    semantics: ProgressSemantics,
    fairness: Fairness,
}

impl TerminationQuery<'_> {
    /// Returns a hang in a graph, if there is one.
    fn find_hang(
        &self,
        graph: &StateGraph,
        model: &ProgressModel,
        memory: DecidingMemory,
    ) -> Option<Termination> {
        let steps = |edges: &[u32], repeats: bool| -> Vec<ProgressStep> {
            let edges = edges.iter().map(|edge| &graph.edges[*edge as usize]);
            edges.map(|edge| to_schedule_step(edge, repeats)).collect()
        };
        let hang =
            |why, schedule| Termination { memory, terminates: Some(false), details: Some(why), schedule };
        // A deadlock satisfies every progress model: no thread is schedulable, so none has a guarantee.
        if let Some(stuck) = graph.deadlock {
            return Some(hang(self.describe_deadlock(graph, stuck), steps(&graph.path_to(stuck), false)));
        }
        let component = graph.find_fair_component(self.threads, model, self.semantics, self.fairness)?;
        // The first state found has the shortest path.
        let entry = component.states.first().copied()?;
        let mut schedule = steps(&graph.path_to(entry), false);
        schedule.extend(steps(&graph.find_cycle(&component, entry), true));
        Some(hang(self.describe_livelock(graph, &component, entry), schedule))
    }

    /// A hang that the axioms permit. An execution has no order of steps to print.
    fn describe_spinning(&self, spins: &[(usize, u32)]) -> Termination {
        let repeated = spins.iter().map(|(thread, line)| {
            format!("{} repeats the loop that ends at line {line}", self.thread_name(*thread))
        });
        Termination {
            memory: DecidingMemory::Axioms,
            terminates: Some(false),
            details: Some(format!("may hang (loop): {}", repeated.collect::<Vec<_>>().join(", "))),
            schedule: Vec::new(),
        }
    }

    fn describe_deadlock(&self, graph: &StateGraph, state: u32) -> String {
        let positions = graph.program_counters(state).iter().enumerate();
        let waiting = positions.filter_map(|(thread, position)| {
            let name = self.thread_name(thread);
            Some(match self.code.threads[thread].operations.get(usize::from(*position))? {
                ProgressOperation::Barrier { .. } | ProgressOperation::SplitBarrier { .. } => {
                    format!("{name} waits at {}", self.line_text(thread, *position))
                }
                _ => format!("{name} waits for a thread before it"),
            })
        });
        format!("may hang (barrier): {}", waiting.collect::<Vec<_>>().join(", "))
    }

    fn describe_livelock(&self, graph: &StateGraph, component: &FairComponent, entry: u32) -> String {
        let statuses = graph.thread_statuses(entry).iter().enumerate();
        let described = statuses.filter_map(|(thread, status)| {
            let mut places: Vec<u16> = component
                .edges
                .iter()
                .map(|edge| &graph.edges[*edge as usize])
                .filter(|edge| usize::from(edge.thread) == thread)
                .map(|edge| edge.instruction)
                .collect();
            places.sort_unstable();
            places.dedup();
            let name = self.thread_name(thread);
            let position = graph.program_counters(entry)[thread];
            if !places.is_empty() {
                let lines: Vec<String> = places.iter().map(|place| self.line_text(thread, *place)).collect();
                Some(format!("{name} repeats {}", lines.join(", ")))
            } else if usize::from(position) >= self.code.threads[thread].operations.len() {
                None
            } else if !status.schedulable {
                Some(format!("{name} waits at {}", self.line_text(thread, position)))
            } else if status.started {
                Some(format!("{name} does not continue from {}", self.line_text(thread, position)))
            } else {
                Some(format!("{name} never starts"))
            }
        });
        format!("may hang (loop): {}", described.collect::<Vec<_>>().join(", "))
    }

    fn thread_name(&self, thread: usize) -> String {
        format!("P{}", self.test.threads[thread].number)
    }

    fn line_text(&self, thread: usize, position: u16) -> String {
        let instruction = self.test.threads[thread].instructions.get(usize::from(position));
        instruction.map_or_else(|| "its end".to_owned(), |i| format!("line {}", i.span.line))
    }
}

fn to_schedule_step(edge: &Transition, repeats: bool) -> ProgressStep {
    ProgressStep {
        thread: ThreadId(edge.thread),
        instruction: edge.instruction,
        read: edge.read.map(Value),
        written: edge.written.map(Value),
        repeats,
    }
}
