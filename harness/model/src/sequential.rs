//! Operational semantics of sequential consistency and of serial execution, as an explicit-state search.
//!
//! It shares no code with the axiomatic engine. It defines which outcomes are *weak* and which are
//! *interleaved*, and tests compare the cat file `sc` with it.
//!
//! The search ends as soon as every wanted outcome is found. Where a step commutes with all later steps of other
//! threads ([`independence`]), only that step is tried.

mod choices;
mod independence;
mod order;
mod state;
mod steps;

use std::cell::OnceCell;

use litmus::{
    Flow, InstructionKind, LocationId, Observable, Outcome, RegisterId, ScalarType, SystemSync, Test,
    ThreadId, Value,
};

use crate::budget::BudgetTracker;
use crate::cells::Extent;
use crate::constants::value_domain;
use crate::quick::QuickSet;
use choices::Choices;
use independence::LaterAccesses;
use state::{DONE, PackedState, StateLayout, words_of_arrivals};

/// The interleaving of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Any thread, one memory access at a time; control barriers block until all participants have arrived.
    Interleaved,
    /// Whole threads in sequence; control barriers do not wait.
    Serial,
}

/// Limit of visited states.
const MAX_STATES: usize = 1_000_000;

/// Initial capacity of the set of visited states, larger than small tests need.
const FEW_STATES: usize = 28;
/// Initial capacity of the stack of open states.
const FEW_OPEN: usize = 8;

/// The state-transition machine of one test.
pub(crate) struct SequentialMachine<'a> {
    test: &'a Test,
    turns: Turns,
    unroll: u32,
    observables: &'a [Observable],
    threads: Vec<StateLayout>,
    /// True if threads are submitted or called.
    calls: bool,
    /// Words of memory for each location.
    words: usize,
    /// The register types of each thread, computed on demand for arithmetic and branches.
    types: OnceCell<Vec<Vec<ScalarType>>>,
    /// The pairs of `ssw` whose first instruction a branch may skip.
    ///
    /// Each has a word of the state that is set once the second instruction ran first. After that the first
    /// is never executed.
    skippable: Vec<(&'a SystemSync, usize)>,
    /// Index of the first word of undefined-byte masks, if the test has undefined initial values.
    undefined: Option<usize>,
    /// The values tried for undefined initial values.
    domain: Vec<Value>,
    choices: Choices,
    /// Words of a state.
    size: usize,
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
            let at = next;
            let jumps = at + 1 + thread.registers.len();
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
            next += words_of_arrivals(thread);
            threads.push(StateLayout { at, jumps, reached, arrived });
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
        let undefined = test.has_undefined().then_some(next + skippable.len());
        let domain = if undefined.is_some() { value_domain(test) } else { Vec::new() };
        let choices = Choices::default();
        let size = undefined.map_or(next + skippable.len(), |first| first + test.locations.len());
        SequentialMachine {
            test,
            turns: Turns::Interleaved,
            unroll,
            observables,
            threads,
            calls,
            words,
            types: OnceCell::new(),
            skippable,
            undefined,
            domain,
            choices,
            size,
        }
    }

    /// Returns outcomes of terminating runs, and true if no wanted outcome is missing.
    ///
    /// The search ends as soon as it has found `count` wanted outcomes.
    pub(crate) fn outcomes(
        &mut self,
        turns: Turns,
        (is_wanted, count): (impl Fn(&Outcome) -> bool, usize),
        purse: &BudgetTracker<'_>,
    ) -> (QuickSet<Outcome>, bool) {
        self.turns = turns;
        let mut outcomes = QuickSet::default();
        let mut missing = count;
        let mut seen: QuickSet<Box<[u64]>> = QuickSet::default();
        let mut state = self.initial();
        let mut next = state.clone();
        // Small searches need no table.
        let mut later: Option<Option<LaterAccesses>> = None;
        // Open states are stored as rows of one vector.
        let mut open = Vec::with_capacity(FEW_OPEN * state.0.len());
        open.extend_from_slice(&state.0);
        let mut complete = true;
        while let Some(rest) = open.len().checked_sub(state.0.len()).filter(|_| missing > 0) {
            if purse.spend(1) || seen.len() > MAX_STATES {
                complete = false;
                break;
            }
            state.0.copy_from_slice(&open[rest..]);
            open.truncate(rest);
            if seen.len() >= FEW_STATES {
                let later = later.get_or_insert_with(|| LaterAccesses::new(self.test)).as_ref();
                let independent = later.and_then(|later| {
                    (0..self.threads.len()).find(|thread| {
                        self.is_independent(&state, *thread, later) && self.turn(&state, *thread, &mut next)
                    })
                });
                if let Some(thread) = independent {
                    if self.is_new(&next, thread, &mut seen) {
                        open.extend_from_slice(&next.0);
                    }
                    continue;
                }
            }
            let mut moved = false;
            for thread in 0..self.threads.len() {
                complete &= self.choices.each(purse, || {
                    if self.turn(&state, thread, &mut next) {
                        moved = true;
                        if self.is_new(&next, thread, &mut seen) {
                            open.extend_from_slice(&next.0);
                        }
                    }
                });
            }
            // A state without a successor is an outcome only if all threads have ended. Otherwise
            // it is a deadlock.
            if !moved && self.threads.iter().all(|layout| state.0[layout.at] == DONE) {
                complete &= self.choices.each(purse, || {
                    let outcome = self.outcome(&state);
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
    fn is_new(&self, state: &PackedState, thread: usize, seen: &mut QuickSet<Box<[u64]>>) -> bool {
        // A path that exceeds the loop bound never terminates.
        if state.is_stuck() {
            return false;
        }
        // A state with a single predecessor cannot be reached twice, so it is not stored.
        if self.alone(state, thread) {
            return true;
        }
        if seen.is_empty() {
            seen.reserve(FEW_STATES);
        }
        !seen.contains(state.0.as_slice()) && seen.insert(state.0.as_slice().into())
    }

    fn initial(&self) -> PackedState {
        let mut words = Vec::with_capacity(self.size);
        words.push(0);
        for location in 0..self.test.locations.len() {
            let bits = self.test.initial_bits(LocationId(location as u16));
            words.extend([bits as u64, (bits >> 64) as u64].into_iter().take(self.words));
        }
        for (index, layout) in self.threads.iter().enumerate() {
            words.resize(layout.at + 1, 0);
            let registers = 0..self.test.threads[index].registers.len();
            words.extend(
                registers.map(|r| self.test.initial_register(ThreadId(index as u16), RegisterId(r as u16)).0),
            );
            let end = self
                .threads
                .get(index + 1)
                .map_or_else(|| layout.arrived + self.words_of_arrivals(index), |l| l.at);
            words.resize(end, 0);
        }
        words.resize(words.len() + self.skippable.len(), 0);
        if self.undefined.is_some() {
            words.extend((0..self.test.locations.len()).map(|index| {
                let name = LocationId(index as u16);
                let bytes = self.test.location(name).bytes();
                // One bit for each byte that is still undefined.
                if self.test.is_undefined(name) { (1 << bytes) - 1 } else { 0 }
            }));
        }
        let mut state = PackedState(words);
        for thread in 0..self.threads.len() {
            self.settle(&mut state, thread);
        }
        state
    }

    fn outcome(&self, state: &PackedState) -> Outcome {
        Outcome(
            self.observables
                .iter()
                .map(|observable| match observable {
                    Observable::Register(thread, register) => {
                        self.register(state, usize::from(thread.0), *register)
                    }
                    Observable::Location(location, component) => {
                        self.read(state, Extent::from_component(self.test, *location, *component))
                    }
                })
                .collect(),
        )
    }
}
