//! Operational semantics of sequential consistency and of serial execution, as an explicit-state search.
//!
//! It shares no code with the axiomatic engine. It defines which outcomes are *weak* and which are
//! *interleaved*, and tests compare the cat file `sc` with it.
//!
//! The search ends as soon as every wanted outcome is found. Where a step commutes with all later steps of other
//! threads ([`independence`]), only that step is tried.

mod choices;
mod independence;
mod state;
mod steps;
mod waiting;

use std::cell::OnceCell;

use litmus::{
    Flow, InstructionKind, LocationId, Observable, Outcome, RegisterId, ScalarType, SystemSync, Test,
    ThreadId, Value,
};

use crate::cells::Extent;
use crate::constants::value_domain;
use crate::quick::QuickSet;
use choices::StepChoices;
use independence::LaterAccesses;
use solver::BudgetTracker;
use state::{DONE, PackedState, StateLayout, arrival_word_count};

/// The interleaving of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulingMode {
    /// Any thread, one memory access at a time; control barriers block until all participants have arrived.
    Interleaved,
    /// Whole threads in sequence; control barriers do not wait.
    Serial,
}

/// Limit of visited states.
const MAX_STATES: usize = 1_000_000;

/// Initial capacity of the set of visited states, larger than small tests need.
const INITIAL_STATE_CAPACITY: usize = 28;
/// Initial capacity of the stack of open states.
const INITIAL_STACK_CAPACITY: usize = 8;

/// The state-transition machine of one test.
pub(crate) struct SequentialMachine<'a> {
    test: &'a Test,
    mode: SchedulingMode,
    unroll: u32,
    observables: &'a [Observable],
    threads: Vec<StateLayout>,
    /// True if threads are submitted or called.
    has_calls: bool,
    /// Words of memory for each location.
    words_per_location: usize,
    /// The register types of each thread, computed on demand for arithmetic and branches.
    register_types: OnceCell<Vec<Vec<ScalarType>>>,
    /// The pairs of `ssw` whose first instruction a branch may skip.
    ///
    /// Each has a word of the state that is set once the second instruction ran first. After that the first
    /// is never executed.
    skippable: Vec<(&'a SystemSync, usize)>,
    /// Index of the first word of undefined-byte masks, if the test has undefined initial values.
    first_undefined_word: Option<usize>,
    /// The values tried for undefined initial values.
    undefined_values: Vec<Value>,
    choices: StepChoices,
    /// Words of a state.
    state_words: usize,
}

impl<'a> SequentialMachine<'a> {
    /// Creates the machine; each back edge is taken less than `unroll` times.
    pub(crate) fn new(test: &'a Test, observables: &'a [Observable], unroll: u32) -> SequentialMachine<'a> {
        let words = if test.locations.iter().any(|location| location.bytes() > 8) { 2 } else { 1 };
        // Word 0 is the stuck flag; the locations follow it.
        let mut next = 1 + words * test.locations.len();
        let mut threads = Vec::with_capacity(test.threads.len());
        for thread in &test.threads {
            let count = thread.instructions.len();
            let position = next;
            let jumps = position + 1 + thread.registers.len();
            let has = |wanted: fn(&InstructionKind) -> bool| {
                thread.instructions.iter().any(|instruction| wanted(&instruction.kind))
            };
            let reached = jumps
                + if has(|kind| matches!(kind, InstructionKind::Flow(Flow::Label(_)))) { count } else { 0 };
            next = reached
                + if has(|kind| matches!(kind, InstructionKind::ControlBarrier(_))) {
                    count.div_ceil(64)
                } else {
                    0
                };
            let arrived = next;
            next += arrival_word_count(thread);
            threads.push(StateLayout { position, jumps, reached, arrived });
        }
        let calls = test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
            matches!(instruction.kind, InstructionKind::System(_) | InstructionKind::ShaderCall(_))
        });
        // A jump before the first instruction of the pair may skip it.
        let skippable: Vec<(&SystemSync, usize)> = test
            .system_sync
            .iter()
            .filter(|sync| {
                test.orders_events(sync)
                    && sync.from.instruction.is_some_and(|first| {
                        let instructions = &test.thread(sync.from.thread).instructions;
                        instructions.iter().take(usize::from(first)).any(|i| {
                            matches!(
                                i.kind,
                                InstructionKind::Flow(
                                    Flow::Branch { .. } | Flow::BranchIf { .. } | Flow::Goto(_)
                                )
                            )
                        })
                    })
            })
            .enumerate()
            .map(|(index, sync)| (sync, next + index))
            .collect();
        let undefined = test.has_undefined_locations().then_some(next + skippable.len());
        let domain = if undefined.is_some() { value_domain(test) } else { Vec::new() };
        let choices = StepChoices::default();
        let size = undefined.map_or(next + skippable.len(), |first| first + test.locations.len());
        SequentialMachine {
            test,
            mode: SchedulingMode::Interleaved,
            unroll,
            observables,
            threads,
            has_calls: calls,
            words_per_location: words,
            register_types: OnceCell::new(),
            skippable,
            first_undefined_word: undefined,
            undefined_values: domain,
            choices,
            state_words: size,
        }
    }

    /// Returns outcomes of terminating runs, and true if no wanted outcome is missing.
    ///
    /// The search ends as soon as it has found `count` wanted outcomes.
    pub(crate) fn find_outcomes(
        &mut self,
        mode: SchedulingMode,
        (is_wanted, count): (impl Fn(&Outcome) -> bool, usize),
        tracker: &BudgetTracker<'_>,
    ) -> (QuickSet<Outcome>, bool) {
        self.mode = mode;
        let mut outcomes = QuickSet::default();
        let mut missing = count;
        let mut visited: QuickSet<Box<[u64]>> = QuickSet::default();
        let mut state = self.initial_state();
        let mut next = state.clone();
        // Small searches need no table.
        let mut later: Option<Option<LaterAccesses>> = None;
        // Open states are stored as rows of one vector.
        let mut stack = Vec::with_capacity(INITIAL_STACK_CAPACITY * state.0.len());
        stack.extend_from_slice(&state.0);
        let mut complete = true;
        while let Some(rest) = stack.len().checked_sub(state.0.len()).filter(|_| missing > 0) {
            if tracker.spend(1) || visited.len() > MAX_STATES {
                complete = false;
                break;
            }
            state.0.copy_from_slice(&stack[rest..]);
            stack.truncate(rest);
            if visited.len() >= INITIAL_STATE_CAPACITY {
                let later = later.get_or_insert_with(|| LaterAccesses::new(self.test)).as_ref();
                let independent = later.and_then(|later| {
                    (0..self.threads.len()).find(|thread| {
                        self.is_independent(&state, *thread, later)
                            && self.run_turn(&state, *thread, &mut next)
                    })
                });
                if let Some(thread) = independent {
                    if self.is_new(&next, thread, &mut visited) {
                        stack.extend_from_slice(&next.0);
                    }
                    continue;
                }
            }
            let mut has_moved = false;
            for thread in 0..self.threads.len() {
                complete &= self.choices.for_each_choice(tracker, || {
                    if self.run_turn(&state, thread, &mut next) {
                        has_moved = true;
                        if self.is_new(&next, thread, &mut visited) {
                            stack.extend_from_slice(&next.0);
                        }
                    }
                });
            }
            // A state without a successor is an outcome only if all threads have ended. Otherwise
            // it is a deadlock.
            if !has_moved && self.threads.iter().all(|layout| state.0[layout.position] == DONE) {
                complete &= self.choices.for_each_choice(tracker, || {
                    let outcome = self.final_outcome(&state);
                    let is_wanted = is_wanted(&outcome);
                    if outcomes.insert(outcome) && is_wanted {
                        missing = missing.saturating_sub(1);
                    }
                });
            }
        }
        (outcomes, complete || missing == 0)
    }

    /// Returns true if the successor state was not visited before, and marks it as visited.
    fn is_new(&self, state: &PackedState, thread: usize, visited: &mut QuickSet<Box<[u64]>>) -> bool {
        // A path that exceeds the loop bound never terminates.
        if state.is_stuck() {
            return false;
        }
        // A state with a single predecessor cannot be reached twice, so it is not stored.
        if self.is_last_running(state, thread) {
            return true;
        }
        if visited.is_empty() {
            visited.reserve(INITIAL_STATE_CAPACITY);
        }
        !visited.contains(state.0.as_slice()) && visited.insert(state.0.as_slice().into())
    }

    fn initial_state(&self) -> PackedState {
        let mut words = Vec::with_capacity(self.state_words);
        words.push(0);
        for location in 0..self.test.locations.len() {
            let bits = self.test.initial_bits(LocationId(location as u16));
            words.extend([bits as u64, (bits >> 64) as u64].into_iter().take(self.words_per_location));
        }
        for (index, layout) in self.threads.iter().enumerate() {
            words.resize(layout.position + 1, 0);
            let registers = 0..self.test.threads[index].registers.len();
            words.extend(
                registers.map(|r| self.test.initial_register(ThreadId(index as u16), RegisterId(r as u16)).0),
            );
            let end = self
                .threads
                .get(index + 1)
                .map_or_else(|| layout.arrived + self.arrival_word_count(index), |l| l.position);
            words.resize(end, 0);
        }
        words.resize(words.len() + self.skippable.len(), 0);
        if self.first_undefined_word.is_some() {
            words.extend((0..self.test.locations.len()).map(|index| {
                let name = LocationId(index as u16);
                let bytes = self.test.location(name).bytes();
                // One bit for each byte that is still undefined.
                if self.test.has_undefined_init(name) { (1 << bytes) - 1 } else { 0 }
            }));
        }
        let mut state = PackedState(words);
        for thread in 0..self.threads.len() {
            self.run_local_instructions(&mut state, thread);
        }
        state
    }

    fn final_outcome(&self, state: &PackedState) -> Outcome {
        Outcome(
            self.observables
                .iter()
                .map(|observable| match observable {
                    Observable::Register(thread, register) => {
                        Value(self.registers(state, usize::from(thread.0))[usize::from(register.0)])
                    }
                    Observable::Location(location, component) => {
                        self.read_memory(state, Extent::from_component(self.test, *location, *component))
                    }
                })
                .collect(),
        )
    }
}
