//! Operational semantics of sequential consistency and of serial execution, as an explicit-state search.
//!
//! It shares no code with the axiomatic engine. It defines which outcomes are *weak* and which are
//! *interleaved*, and tests compare the cat file `sc` with it.
//!
//! Long because one machine executes every kind of instruction.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, ArithmeticOperation, Compute, ControlBarrier, Flow, Instruction, InstructionKind, Interlock,
    InterlockEnd, InterlockOrder, LabelId, LocationId, MemoryAccess, Observable, Operand, Outcome,
    RegisterId, RmwOperation, ScalarType, Scope, SplitHalf, SubgroupOperation, SystemOperation, SystemSync,
    TangleInstance, Test, Thread, ThreadId, Value,
};

use std::cell::{Cell, OnceCell, RefCell};

use crate::budget::BudgetTracker;
use crate::cells::Extent;
use crate::constants::value_domain;
use crate::quick::QuickSet;

/// The interleaving of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Any thread, one memory access at a time; control barriers block until all participants have arrived.
    Interleaved,
    /// Whole threads in sequence; control barriers do not wait.
    Serial,
}

/// The values of undefined initial reads, enumerated like an odometer.
#[derive(Debug, Default)]
struct Choices {
    /// The chosen index and the number of choices.
    taken: RefCell<Vec<(usize, usize)>>,
    /// Number of choices requested in this run.
    asked: Cell<usize>,
}

impl Choices {
    /// Runs `act` once for every sequence of choices; returns true if all sequences were tried.
    fn each(&self, purse: &BudgetTracker<'_>, mut act: impl FnMut()) -> bool {
        self.taken.borrow_mut().clear();
        loop {
            self.asked.set(0);
            act();
            let mut taken = self.taken.borrow_mut();
            // The last increment may have led to a run with fewer choices.
            taken.truncate(self.asked.get());
            while taken.last().is_some_and(|(chosen, count)| chosen + 1 >= *count) {
                taken.pop();
            }
            match taken.last_mut() {
                None => return true,
                Some((chosen, _)) => *chosen += 1,
            }
            if purse.spend(1) {
                return false;
            }
        }
    }

    /// Chooses an index below `count`.
    fn one_of(&self, count: usize) -> usize {
        let mut taken = self.taken.borrow_mut();
        let at = self.asked.replace(self.asked.get() + 1);
        if at == taken.len() {
            taken.push((0, count));
        }
        taken.get(at).map_or(0, |(chosen, _)| *chosen)
    }
}

/// Limit of visited states.
const MAX_STATES: usize = 1_000_000;

/// Initial capacity of the set of visited states, larger than small tests need.
const FEW_STATES: usize = 28;
/// Initial capacity of the stack of open states.
const FEW_OPEN: usize = 8;

/// The position of a thread that has run to its end.
const DONE: u64 = u64::MAX;

/// A program state, packed into words.
///
/// It holds a stuck flag, memory by location (two words each if one has more than eight bytes), then the
/// [`StateLayout`] of each thread. If initial values are undefined, the bytes that are still undefined follow as
/// bits, for each location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PackedState(Vec<u64>);

impl PackedState {
    fn is_stuck(&self) -> bool {
        self.0[0] != 0
    }

    fn stick(&mut self) {
        self.0[0] = 1;
    }
}

/// The position of a thread's words in the state.
#[derive(Clone, Debug)]
struct StateLayout {
    /// The position, [`DONE`] at the end; the registers follow it.
    at: usize,
    /// Counts of back-jumps by instruction, where the thread has any.
    jumps: usize,
    /// Bits of control barriers reached, where the thread has any.
    reached: usize,
    /// Arrivals at split barriers of a workgroup and of a subgroup, where the thread has any.
    arrived: usize,
}

/// Number of words that count a thread's arrivals: one per execution scope.
fn words_of_arrivals(thread: &Thread) -> usize {
    let has = |i: &Instruction| matches!(i.kind, InstructionKind::SplitBarrier(_));
    if thread.instructions.iter().any(has) { 2 } else { 0 }
}

/// Returns a mask of the lowest bytes of a word.
fn low_bytes(bytes: u32) -> u64 {
    if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX }
}

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

    /// Returns the outcomes of all terminating runs, and true if all runs were tried.
    pub(crate) fn outcomes(&mut self, turns: Turns, purse: &BudgetTracker<'_>) -> (QuickSet<Outcome>, bool) {
        self.turns = turns;
        let mut outcomes = QuickSet::default();
        let mut seen: QuickSet<Box<[u64]>> = QuickSet::default();
        let mut state = self.initial();
        let mut next = state.clone();
        // Open states are stored as rows of one vector.
        let mut open = Vec::with_capacity(FEW_OPEN * state.0.len());
        open.extend_from_slice(&state.0);
        let mut complete = true;
        while let Some(rest) = open.len().checked_sub(state.0.len()) {
            if purse.spend(1) || seen.len() > MAX_STATES {
                complete = false;
                break;
            }
            state.0.copy_from_slice(&open[rest..]);
            open.truncate(rest);
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
                    outcomes.insert(self.outcome(&state));
                });
            }
        }
        (outcomes, complete)
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

    fn words_of_arrivals(&self, thread: usize) -> usize {
        words_of_arrivals(&self.test.threads[thread])
    }

    /// Returns the word that counts a thread's arrivals at split barriers of a scope; `None` without split
    /// barriers.
    fn arrivals(&self, thread: usize, scope: Scope) -> Option<usize> {
        let words = self.words_of_arrivals(thread);
        (words > 0).then(|| self.threads[thread].arrived + usize::from(scope == Scope::Subgroup))
    }

    /// Returns true if all partners of the thread's wait have arrived as often as it has.
    fn all_arrived(&self, state: &PackedState, thread: usize, scope: Scope) -> bool {
        let own = self.arrivals(thread, scope).map_or(0, |word| state.0[word]);
        (0..self.test.threads.len()).all(|other| {
            !self.test.wait_for_each_other(ThreadId(thread as u16), ThreadId(other as u16), scope)
                || self.arrivals(other, scope).is_some_and(|word| state.0[word] >= own)
        })
    }

    /// Returns true if no other thread can still move. Then no other run reaches this state again.
    fn alone(&self, state: &PackedState, thread: usize) -> bool {
        self.threads.iter().enumerate().all(|(other, layout)| other == thread || state.0[layout.at] == DONE)
    }

    fn at(&self, state: &PackedState, thread: usize) -> usize {
        state.0[self.threads[thread].at] as usize
    }

    fn is_done(&self, state: &PackedState, thread: usize) -> bool {
        state.0[self.threads[thread].at] == DONE
    }

    fn advance(&self, state: &mut PackedState, thread: usize) {
        state.0[self.threads[thread].at] += 1;
    }

    fn register(&self, state: &PackedState, thread: usize, register: RegisterId) -> Value {
        Value(state.0[self.threads[thread].at + 1 + usize::from(register.0)])
    }

    fn assign(&self, state: &mut PackedState, thread: usize, register: RegisterId, value: Value) {
        state.0[self.threads[thread].at + 1 + usize::from(register.0)] = value.0;
    }

    /// Assigns a value read from a location of this type.
    fn assign_loaded(
        &self,
        state: &mut PackedState,
        thread: usize,
        register: RegisterId,
        value: Value,
        scalar: ScalarType,
    ) {
        let value = value.extend(scalar, self.register_type(thread, register));
        self.assign(state, thread, register, value);
    }

    fn has_reached(&self, state: &PackedState, thread: usize, instruction: usize) -> bool {
        let word = self.threads[thread].reached + instruction / 64;
        state.0[word] & (1 << (instruction % 64)) != 0
    }

    /// Executes one step of a thread, or its whole run, into `next`; false if the thread is blocked.
    fn turn(&self, state: &PackedState, thread: usize, next: &mut PackedState) -> bool {
        if self.is_done(state, thread) || !self.may_start(state, thread) {
            return false;
        }
        next.0.copy_from_slice(&state.0);
        for (sync, word) in &self.skippable {
            if self.orders_next(state, thread, sync) && !self.is_over(state, sync) {
                // The step commits to a run in which the first side is skipped.
                next.0[*word] = 1;
            }
        }
        let mut moved = false;
        while !self.is_done(next, thread) && !next.is_stuck() {
            if !self.step(next, thread) {
                // It continues when the awaited step is done.
                return moved;
            }
            moved = true;
            self.settle(next, thread);
            // The last running thread cannot be interleaved, so its steps need no intermediate states.
            if self.turns == Turns::Interleaved && !self.alone(next, thread) {
                break;
            }
        }
        moved
    }

    /// Returns true if every predecessor of the thread's next instruction is done, or may still be skipped.
    fn may_start(&self, state: &PackedState, thread: usize) -> bool {
        self.is_started(state, thread)
            && self.test.system_sync.iter().all(|sync| {
                !self.orders_next(state, thread, sync)
                    || self.is_over(state, sync)
                    || self.skippable.iter().any(|(skippable, _)| *skippable == sync)
                        && !self.stands_at_first(state, sync)
            })
    }

    /// Returns true if every predecessor of the thread's next instruction is done.
    fn is_due(&self, state: &PackedState, thread: usize) -> bool {
        self.test
            .system_sync
            .iter()
            .all(|sync| !self.orders_next(state, thread, sync) || self.is_over(state, sync))
    }

    /// Returns true if the pair orders the thread's next instruction after another thread's.
    fn orders_next(&self, state: &PackedState, thread: usize, sync: &SystemSync) -> bool {
        usize::from(sync.to.thread.0) == thread
            && sync.from.thread != sync.to.thread
            && self.test.orders_events(sync)
            && sync
                .to
                .instruction
                .is_none_or(|i| usize::from(i) == self.at(state, thread) || self.turns == Turns::Serial)
    }

    /// Returns true if the first side of the pair is done or skipped. A finished thread is past every
    /// instruction.
    fn is_over(&self, state: &PackedState, sync: &SystemSync) -> bool {
        let other = usize::from(sync.from.thread.0);
        self.is_done(state, other)
            || sync.from.instruction.is_some_and(|i| self.at(state, other) > usize::from(i))
    }

    fn stands_at_first(&self, state: &PackedState, sync: &SystemSync) -> bool {
        sync.from
            .instruction
            .is_some_and(|i| self.at(state, usize::from(sync.from.thread.0)) == usize::from(i))
    }

    /// Returns true if the thread needs no submission or shader call, or has received it.
    fn is_started(&self, state: &PackedState, thread: usize) -> bool {
        if !self.calls {
            return true;
        }
        let names = |threads: &[ThreadId]| threads.iter().any(|other| usize::from(other.0) == thread);
        self.test.threads.iter().enumerate().all(|(number, other)| {
            let at = self.at(state, number);
            other.instructions.iter().enumerate().all(|(index, instruction)| match &instruction.kind {
                // A submission is complete when its threads start. A caller stays at its call while
                // the callees run.
                InstructionKind::System(SystemOperation::Submit(threads)) if names(threads) => at > index,
                InstructionKind::ShaderCall(threads) if names(threads) => at >= index,
                InstructionKind::Access(_)
                | InstructionKind::Fence { .. }
                | InstructionKind::ControlBarrier(_)
                | InstructionKind::SplitBarrier(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Subgroup(_)
                | InstructionKind::Compute(_)
                | InstructionKind::Flow(_) => true,
            })
        })
    }

    /// Executes instructions that do not access memory: labels, jumps, arithmetic, memory barriers.
    fn settle(&self, state: &mut PackedState, thread: usize) {
        loop {
            // An earlier step relied on this instruction being skipped.
            if self
                .skippable
                .iter()
                .any(|(sync, word)| state.0[*word] != 0 && self.stands_at_first(state, sync))
            {
                state.stick();
                return;
            }
            let instructions = &self.test.threads[thread].instructions;
            let at = self.at(state, thread);
            let Some(instruction) = instructions.get(at) else {
                state.0[self.threads[thread].at] = DONE;
                return;
            };
            match &instruction.kind {
                InstructionKind::Access(_) => return,
                InstructionKind::Compute(Compute::Move { destination, value }) => {
                    let value = self.value(state, thread, *value, ScalarType::default());
                    self.assign(state, thread, *destination, value);
                    self.advance(state, thread);
                }
                InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
                    let scalar = ScalarType::default();
                    let unsigned = |operand| self.value(state, thread, operand, scalar).0 as i64;
                    let holds = relation.holds(unsigned(*left), unsigned(*right));
                    self.assign(state, thread, *destination, Value(u64::from(holds)));
                    self.advance(state, thread);
                }
                InstructionKind::Flow(Flow::BranchIf { condition, target }) => {
                    if self.register(state, thread, *condition) != Value(0) {
                        self.jump(state, thread, *target);
                    } else {
                        self.advance(state, thread);
                    }
                }
                // Subgroup operations execute together with the other lanes of the tangle.
                InstructionKind::Subgroup(_) => return,
                InstructionKind::ControlBarrier(_) => {
                    // The arrival is recorded here, so that other threads pass the barrier while
                    // this one still stays at it.
                    state.0[self.threads[thread].reached + at / 64] |= 1 << (at % 64);
                    if self.turns == Turns::Interleaved {
                        return;
                    }
                    self.advance(state, thread);
                }
                InstructionKind::SplitBarrier(barrier) => {
                    if self.gated(thread, at) && self.turns == Turns::Interleaved {
                        return;
                    }
                    match barrier.half {
                        SplitHalf::Arrive => {
                            if let Some(word) = self.arrivals(thread, barrier.execution_scope) {
                                state.0[word] += 1;
                            }
                        }
                        SplitHalf::Wait if self.turns == Turns::Interleaved => return,
                        SplitHalf::Wait => {}
                    }
                    self.advance(state, thread);
                }
                // The first thread to enter excludes the others, so this is a scheduling choice.
                InstructionKind::Interlock(Interlock {
                    end: InterlockEnd::Begin,
                    order: InterlockOrder::Unordered,
                    ..
                }) if self.turns == Turns::Interleaved => return,
                InstructionKind::Fence { .. }
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Flow(Flow::Label(_)) => {
                    if self.waits(state, thread, at) {
                        return;
                    }
                    // An instruction that is ordered after another thread's waits for it.
                    if self.gated(thread, at) && self.turns == Turns::Interleaved {
                        return;
                    }
                    self.advance(state, thread);
                }
                InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                    let scalar = self.register_type(thread, *destination);
                    let left = self.value(state, thread, *left, scalar);
                    let right = self.value(state, thread, *right, scalar);
                    self.assign(state, thread, *destination, operation.apply(left, right, scalar));
                    self.advance(state, thread);
                }
                InstructionKind::Flow(Flow::Goto(target)) => self.jump(state, thread, *target),
                InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                    let scalar = self.comparison_type(thread, *left, *right);
                    let left = self.value(state, thread, *left, scalar).to_signed(scalar);
                    let right = self.value(state, thread, *right, scalar).to_signed(scalar);
                    if relation.holds(left, right) {
                        self.jump(state, thread, *target);
                    } else {
                        self.advance(state, thread);
                    }
                }
            }
            if state.is_stuck() {
                return;
            }
        }
    }

    fn gated(&self, thread: usize, at: usize) -> bool {
        self.test
            .system_sync
            .iter()
            .filter(|sync| self.test.orders_events(sync))
            .any(|sync| usize::from(sync.to.thread.0) == thread && sync.to.instruction == Some(at as u16))
    }

    fn register_type(&self, thread: usize, register: RegisterId) -> ScalarType {
        let types = self.types.get_or_init(|| {
            let of = |(index, thread): (usize, &Thread)| {
                let of = |r| self.test.register_type(ThreadId(index as u16), RegisterId(r as u16));
                (0..thread.registers.len()).map(of).collect()
            };
            self.test.threads.iter().enumerate().map(of).collect()
        });
        types[thread][usize::from(register.0)]
    }

    fn comparison_type(&self, thread: usize, left: Operand, right: Operand) -> ScalarType {
        let ty = |operand| match operand {
            Operand::Constant(_) => ScalarType::default(),
            Operand::Register(register) => self.register_type(thread, register),
        };
        let (left, right) = (ty(left), ty(right));
        if right.bits() > left.bits() { right } else { left }
    }

    fn jump(&self, state: &mut PackedState, thread: usize, target: LabelId) {
        let instructions = &self.test.threads[thread].instructions;
        let position = instructions.iter().position(|i| i.kind == InstructionKind::Flow(Flow::Label(target)));
        let at = self.at(state, thread);
        let Some(position) = position else {
            state.stick();
            return;
        };
        // Only backward jumps close a loop. Each has its own bound.
        if position <= at {
            let jumps = &mut state.0[self.threads[thread].jumps + at];
            *jumps += 1;
            if *jumps >= u64::from(self.unroll) {
                state.stick();
                return;
            }
        }
        state.0[self.threads[thread].at] = position as u64;
    }

    /// Executes the thread's next memory access or control barrier; false if it must wait.
    fn step(&self, state: &mut PackedState, thread: usize) -> bool {
        let at = self.at(state, thread);
        let Some(instruction) = self.test.threads[thread].instructions.get(at) else { return false };
        let goes_on = match &instruction.kind {
            InstructionKind::Access(access) if !access.is_vector() => self.perform(state, thread, access),
            // Sequential consistency orders instructions, so all components of a vector are accessed
            // together.
            InstructionKind::Access(access) => access.lanes().all(|lane| self.perform(state, thread, &lane)),
            InstructionKind::ControlBarrier(barrier) => {
                self.passes(state, thread, barrier) && !self.waits(state, thread, at)
            }
            InstructionKind::Subgroup(operation) => {
                return !self.waits(state, thread, at) && self.compute_together(state, thread, operation);
            }
            InstructionKind::SplitBarrier(barrier) => match barrier.half {
                // An arrival that had to wait for another thread's instruction is not counted yet.
                SplitHalf::Arrive => {
                    if let Some(word) = self.arrivals(thread, barrier.execution_scope) {
                        state.0[word] += 1;
                    }
                    true
                }
                SplitHalf::Wait => self.all_arrived(state, thread, barrier.execution_scope),
            },
            InstructionKind::Fence { .. }
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => !self.waits(state, thread, at),
        };
        if !goes_on {
            return false;
        }
        self.advance(state, thread);
        true
    }

    /// Executes a subgroup operation for all participating lanes; false if one has not arrived.
    fn compute_together(
        &self,
        state: &mut PackedState,
        thread: usize,
        operation: &SubgroupOperation,
    ) -> bool {
        let mut tangle =
            self.test.tangle_lanes(ThreadId(thread as u16), TangleInstance::Operation(&operation.id));
        // A lane past the operation has skipped it.
        tangle.retain(|lane| self.at(state, usize::from(lane.thread.0)) <= lane.instruction);
        let lanes: Vec<(usize, &SubgroupOperation)> = tangle
            .iter()
            .filter_map(|lane| {
                let index = usize::from(lane.thread.0);
                let here = self.at(state, index) == lane.instruction
                    && (index == thread || self.may_start(state, index));
                let found = self.test.thread(lane.thread).instructions.get(lane.instruction)?;
                found.kind.subgroup_operation().filter(|_| here).map(|operation| (index, operation))
            })
            .collect();
        // Some lane has not arrived yet.
        if lanes.len() < tangle.len() {
            return false;
        }
        let scalar = ScalarType::U32;
        let brought = tangle.iter().zip(&lanes).map(|(lane, (index, operation))| {
            (lane.lane, operation.value.map_or(Value(0), |value| self.value(state, *index, value, scalar)))
        });
        let brought: Vec<(u32, Value)> = brought.collect();
        for (lane, (index, operation)) in tangle.iter().zip(&lanes) {
            let constant = |number: u32| Value(number.into());
            let compute = |operation: ArithmeticOperation, left, right| operation.apply(left, right, scalar);
            let result = operation.kind.result_in_lane(lane.lane, &brought, &constant, &compute);
            if let (Some(destination), Some(result)) = (operation.destination, result) {
                self.assign(state, *index, destination, result);
            }
            self.advance(state, *index);
        }
        for (index, _) in lanes.iter().filter(|(index, _)| *index != thread) {
            self.settle(state, *index);
        }
        true
    }

    /// Performs a scalar access; false if it must wait.
    fn perform(&self, state: &mut PackedState, thread: usize, access: &MemoryAccess) -> bool {
        let extent = Extent::of(self.test, &access.place);
        let scalar = access.place.scalar_type(self.test);
        match access.kind {
            AccessKind::Await { destination, value } => {
                let seen = self.read(state, extent);
                if seen != self.value(state, thread, value, scalar) {
                    return false;
                }
                self.assign_loaded(state, thread, destination, seen, scalar);
            }
            AccessKind::Load(destinations) => {
                let value = self.read(state, extent);
                self.assign_loaded(state, thread, destinations.first(), value, scalar);
            }
            AccessKind::Store(values) => {
                let value = self.value(state, thread, values.first(), scalar);
                self.write(state, extent, value);
            }
            AccessKind::Rmw { destination, operation } => {
                let old = self.read(state, extent);
                let new = match operation {
                    RmwOperation::Exchange(operand) => Some(self.value(state, thread, operand, scalar)),
                    RmwOperation::Fetch(operation, operand) => {
                        let operand = self.value(state, thread, operand, scalar);
                        Some(ArithmeticOperation::apply(operation, old, operand, scalar))
                    }
                    RmwOperation::CompareExchange { compare, value, .. } => {
                        let compare = self.value(state, thread, compare, scalar);
                        (compare == old).then(|| self.value(state, thread, value, scalar))
                    }
                };
                if let Some(new) = new {
                    self.write(state, extent, new);
                }
                if let Some(destination) = destination {
                    self.assign_loaded(state, thread, destination, old, scalar);
                }
            }
        }
        true
    }

    /// Returns true if every thread that a control barrier waits for has arrived.
    fn passes(&self, state: &PackedState, thread: usize, barrier: &ControlBarrier) -> bool {
        let mut arrived = 0;
        let mut missing = false;
        for (other, other_thread) in self.test.threads.iter().enumerate() {
            for (index, instruction) in other_thread.instructions.iter().enumerate() {
                let InstructionKind::ControlBarrier(candidate) = &instruction.kind else { continue };
                let same = match (&barrier.resource, &candidate.resource) {
                    (None, None) => barrier.id == candidate.id,
                    (Some(left), Some(right)) => left == right,
                    _ => false,
                };
                if same
                    && barrier.execution_scope == candidate.execution_scope
                    && self.test.threads[thread]
                        .place
                        .shares_scope(other_thread.place, barrier.execution_scope)
                {
                    // A thread at the barrier that must first wait for another thread has not arrived.
                    let waits = self.at(state, other) == index && !self.is_due(state, other);
                    if self.has_reached(state, other, index) && !waits {
                        arrived += 1;
                    } else {
                        missing = true;
                    }
                }
            }
        }
        match barrier.quorum {
            Some(quorum) => arrived >= quorum,
            None => !missing,
        }
    }

    /// Returns the word that contains an extent, and the bit offset in it. No access crosses words.
    fn word(&self, extent: Extent) -> (usize, u32) {
        let first = 1 + self.words * usize::from(extent.storage.0);
        (first + (extent.offset / 8) as usize, 8 * (extent.offset % 8))
    }

    fn read(&self, state: &PackedState, extent: Extent) -> Value {
        let (word, shift) = self.word(extent);
        let mut value = (state.0[word] >> shift) & low_bytes(extent.bytes);
        let undefined = self.undefined_bytes(state, extent);
        if undefined != 0 && !self.domain.is_empty() {
            let size = self.test.location(extent.storage).scalar_type().bytes();
            // A part of a location reads the corresponding bytes of the chosen value.
            let any = self.domain[self.choices.one_of(self.domain.len())].0 >> (8 * (extent.offset % size));
            for byte in (0..extent.bytes).filter(|byte| undefined & (1 << byte) != 0) {
                value = value & !(0xFF << (8 * byte)) | any & (0xFF << (8 * byte));
            }
        }
        Value(value)
    }

    /// Returns the bytes of an extent that still have their undefined initial value, as bits.
    fn undefined_bytes(&self, state: &PackedState, extent: Extent) -> u64 {
        let of_storage = self.undefined.map_or(0, |first| state.0[first + usize::from(extent.storage.0)]);
        (of_storage >> extent.offset) & ((1 << extent.bytes) - 1)
    }

    fn write(&self, state: &mut PackedState, extent: Extent, value: Value) {
        let (word, shift) = self.word(extent);
        let kept = !(low_bytes(extent.bytes) << shift);
        state.0[word] = (state.0[word] & kept) | (value.0 << shift);
        if let Some(first) = self.undefined {
            state.0[first + usize::from(extent.storage.0)] &= !(((1 << extent.bytes) - 1) << extent.offset);
        }
    }

    /// Returns true if a wait, a shader call or an interlocked section must wait for other threads.
    fn waits(&self, state: &PackedState, thread: usize, at: usize) -> bool {
        let done = |other: &ThreadId| self.is_done(state, usize::from(other.0));
        match &self.test.threads[thread].instructions[at].kind {
            InstructionKind::System(SystemOperation::Wait(threads))
            | InstructionKind::ShaderCall(threads) => !threads.iter().all(done),
            InstructionKind::Interlock(interlock) if interlock.end == InterlockEnd::Begin => {
                let at = |number: usize, wanted: InterlockEnd| {
                    self.test.threads[number].instructions.iter().rposition(|instruction| {
                        matches!(&instruction.kind, InstructionKind::Interlock(end)
                            if end.end == wanted && end.section == interlock.section)
                    })
                };
                let not_behind_end = |number: usize| {
                    at(number, InterlockEnd::End).is_some_and(|last| self.at(state, number) <= last)
                };
                match interlock.order {
                    // Sections of earlier columns come first.
                    InterlockOrder::Ordered => (0..thread).any(not_behind_end),
                    // No other thread is inside; under serial execution none can be.
                    InterlockOrder::Unordered => {
                        let inside = |number: usize| {
                            let begin = at(number, InterlockEnd::Begin);
                            begin.is_some_and(|begin| self.at(state, number) > begin)
                                && not_behind_end(number)
                        };
                        self.turns == Turns::Interleaved
                            && (0..self.test.threads.len()).any(|number| number != thread && inside(number))
                    }
                }
            }
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => false,
        }
    }

    fn value(&self, state: &PackedState, thread: usize, operand: Operand, scalar: ScalarType) -> Value {
        match operand {
            Operand::Constant(constant) => Value::from_constant(constant, scalar),
            Operand::Register(register) => self.register(state, thread, register).truncate_to(scalar),
        }
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
                        self.read(state, Extent::of_component(self.test, *location, *component))
                    }
                })
                .collect(),
        )
    }
}
