//! Symbolic execution of a thread on all of its paths at once: guarded steps and merged registers.
//!
//! Control reaches an instruction under a guard, a bit of a circuit. Where paths meet, their guards are joined and
//! their registers selected by guard, so that the size is linear in the code and the loop bound, not in the number of
//! paths. An instruction in a loop has one instance for each number of turns. The text decides the order: an
//! instance follows all instances that may lead to it.
//!
//! An iteration that changes nothing ends the thread, as in [`repeated_iterations`](super::repeated_iterations). Here
//! this is a bit: its steps do not execute or can be left out, and the live registers are equal to those before it. An
//! iteration with a use (a race, an observed store) counts as one that changes something. So does one after which a live
//! register depends on other reads, if the model has dependencies: by data, address or control, as of a single path.

#![deny(clippy::wildcard_enum_match_arm)]

mod state;
mod values;

use std::collections::BTreeMap;

use litmus::{
    Access, AccessKind, ArithmeticOperation, Comparison, Compute, Flow, InstructionKind, LabelId, LocationId,
    MemoryAccess, Operand, Performer, RegisterId, RmwOperation, ScalarType, Test, ThreadId, Value,
};
use solver::{Bit, BitVector, Circuit};

pub(crate) use self::state::Dependencies;
use self::state::{
    LoopHead, MergedState, TracedCondition, TracedValue, add_dependencies, join_guards, merge_states,
};
pub(crate) use self::values::{
    PossibleValues, VALUE_BITS, ValueSet, apply_operation, compare, new_read_value, to_constant,
};
use self::values::{extend, low_bits};
use super::repeated_iterations::{LoopFacts, LoopReductions};
use super::{StepAccess, StepKind, ThreadPath, ThreadStep, UNSIGNED};
use crate::cells::Extent;
use crate::registers::{comparison_type, jump_target, label_position};
use crate::symbolic::{ReadIndex, SymbolicValue};

/// Limit of executed instances of instructions of one thread.
const MAX_INSTANCES: usize = 1 << 14;

/// All paths of a thread.
pub(crate) struct GuardedThread {
    /// Every step of every path, in an order that all paths follow. Stored values are in `steps`.
    pub(crate) path: ThreadPath,
    /// The guards and values of these steps.
    pub(crate) steps: Vec<GuardedStep>,
    /// The registers at the end of the path that is taken.
    pub(crate) registers: Vec<BitVector>,
    /// Holds if the thread runs to its end.
    pub(crate) ended: Bit,
    /// Holds if the loop bound ends the thread.
    pub(crate) cut: Bit,
    /// The reads that a branch, an await or an address depends on, even if no event follows.
    pub(crate) decisive: Dependencies,
}

/// The guard and the values of a step.
#[derive(Clone, Debug)]
pub(crate) struct GuardedStep {
    /// Holds if the step executes.
    pub(crate) guard: Bit,
    pub(crate) read: Option<BitVector>,
    pub(crate) written: Option<BitVector>,
    /// The reads that the written value is computed from.
    pub(crate) sources: Dependencies,
    /// The reads that its address is computed from.
    pub(crate) address: Dependencies,
    /// The reads that it is control-dependent on.
    pub(crate) control: Dependencies,
}

/// The clauses that every run satisfies: a read of an await or compare-exchange has the value that its step needs.
pub(crate) type Requirements = Vec<Vec<Bit>>;

/// The instance of an instruction, in an order in which paths lead to later ones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Instance {
    /// The end of the outermost loop, or the instruction itself.
    region_end: usize,
    /// The number of taken back edges of the loop.
    turns: u32,
    /// The taken back edges of the loop, each with its number.
    taken: BTreeMap<usize, u32>,
    instruction: usize,
}

/// The model and the loop bound of an execution on all paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnrollOptions {
    pub(crate) unroll: u32,
    /// True if the model is a shipped Vulkan model.
    pub(crate) knows_text: bool,
    /// True if the model may have dependencies.
    pub(crate) tracks_dependencies: bool,
}

/// Executes a thread on all of its paths; `None` if it has an instruction that is not supported here, or is too long.
///
/// `possible` has the values that reads of each storage may return.
pub(crate) fn unroll_thread(
    test: &Test,
    thread: ThreadId,
    UnrollOptions { unroll, knows_text, tracks_dependencies }: UnrollOptions,
    possible: &PossibleValues,
    circuit: &mut Circuit,
    requirements: &mut Requirements,
) -> Option<GuardedThread> {
    let reductions = if knows_text { LoopReductions::UnreadStores } else { LoopReductions::AnyModel };
    let code = test.thread(thread);
    let observed = vec![true; code.registers.len()];
    let jumps = code.instructions.iter().any(|i| matches!(i.kind, InstructionKind::Flow(_)));
    let facts = if jumps {
        LoopFacts::new(test, thread, &observed, unroll, reductions)
    } else {
        LoopFacts::default()
    };
    let mut unroller = Unroller {
        test,
        thread,
        unroll,
        facts,
        tracks_dependencies,
        possible,
        circuit,
        requirements,
        regions: Vec::new(),
        open: BTreeMap::new(),
        path_steps: Vec::new(),
        steps: Vec::new(),
        executed: vec![0; code.instructions.len()],
        end: None,
        ended: Bit::FALSE,
        cut: Bit::FALSE,
        decisive: Dependencies::new(),
    };
    unroller.find_regions()?;
    unroller.run()?;
    let Unroller { path_steps, steps, end, ended, cut, decisive, .. } = unroller;
    let registers: Vec<BitVector> = end?.registers.into_iter().map(|register| register.value).collect();
    let path = ThreadPath {
        steps: path_steps,
        constraints: Vec::new(),
        registers: vec![SymbolicValue::Known(Value(0)); registers.len()],
        terminated: true,
        truncated: false,
        decisive_reads: Vec::new(),
        taken_branches: Vec::new(),
        replaces_dependencies: false,
    };
    Some(GuardedThread { path, steps, registers, ended, cut, decisive })
}

struct Unroller<'a> {
    test: &'a Test,
    thread: ThreadId,
    unroll: u32,
    facts: LoopFacts,
    /// True if the model may have dependencies.
    tracks_dependencies: bool,
    possible: &'a PossibleValues,
    circuit: &'a mut Circuit,
    requirements: &'a mut Requirements,
    /// The outermost loops: the first and the last instruction of each.
    regions: Vec<(usize, usize)>,
    open: BTreeMap<Instance, MergedState>,
    path_steps: Vec<ThreadStep>,
    steps: Vec<GuardedStep>,
    executed: Vec<u16>,
    /// The state of all paths that ended.
    end: Option<MergedState>,
    ended: Bit,
    cut: Bit,
    decisive: Dependencies,
}

impl Unroller<'_> {
    /// Finds the outermost loops: the unions of overlapping back edges.
    fn find_regions(&mut self) -> Option<()> {
        let instructions = &self.test.thread(self.thread).instructions;
        for (at, instruction) in instructions.iter().enumerate() {
            let InstructionKind::Flow(flow) = &instruction.kind else { continue };
            let Some(target) = jump_target(flow) else { continue };
            let mut start = label_position(instructions, target)?;
            if start > at {
                continue;
            }
            self.regions.retain(|(first, last)| {
                let overlaps = *last >= start;
                if overlaps {
                    start = start.min(*first);
                }
                !overlaps
            });
            self.regions.push((start, at));
        }
        Some(())
    }

    fn run(&mut self) -> Option<()> {
        let registers = &self.test.thread(self.thread).registers;
        let initial = |register: usize| {
            let value = self.test.initial_register(self.thread, RegisterId(register as u16));
            TracedValue { value: to_constant(value), sources: Dependencies::new() }
        };
        let unassigned = TracedCondition { holds: Bit::FALSE, sources: Dependencies::new() };
        let start = MergedState {
            guard: Bit::TRUE,
            registers: (0..registers.len()).map(initial).collect(),
            conditions: vec![unassigned; registers.len()],
            control: BTreeMap::new(),
            heads: BTreeMap::new(),
        };
        self.add_state(start, 0, BTreeMap::new());
        let length = self.test.thread(self.thread).instructions.len();
        let mut instances = 0;
        while let Some((instance, state)) = self.open.pop_first() {
            instances += 1;
            if instances > MAX_INSTANCES {
                return None;
            }
            if instance.instruction >= length {
                self.ended = join_guards(self.circuit, self.ended, state.guard);
                self.finish(state);
            } else {
                self.execute(instance, state)?;
            }
        }
        Some(())
    }

    /// Adds a state before an instruction.
    fn add_state(&mut self, state: MergedState, instruction: usize, taken: BTreeMap<usize, u32>) {
        if state.guard == Bit::FALSE {
            return;
        }
        let region = self.regions.iter().find(|(first, last)| (*first..=*last).contains(&instruction));
        // Outside of the loop, the number of its turns does not matter.
        let instance = match region {
            Some((first, last)) => {
                let taken: BTreeMap<usize, u32> =
                    taken.into_iter().filter(|(edge, _)| (*first..=*last).contains(edge)).collect();
                Instance { region_end: *last, turns: taken.values().sum(), taken, instruction }
            }
            None => Instance { region_end: instruction, turns: 0, taken: BTreeMap::new(), instruction },
        };
        let merged = match self.open.remove(&instance) {
            Some(other) => merge_states(self.circuit, other, state),
            None => state,
        };
        self.open.insert(instance, merged);
    }

    /// Adds a state in which the thread takes no further step.
    fn finish(&mut self, state: MergedState) {
        if state.guard != Bit::FALSE {
            self.end = Some(match self.end.take() {
                Some(other) => merge_states(self.circuit, other, state),
                None => state,
            });
        }
    }

    fn execute(&mut self, instance: Instance, mut state: MergedState) -> Option<()> {
        let at = instance.instruction;
        let kind = &self.test.thread(self.thread).instructions.get(at)?.kind;
        match kind {
            InstructionKind::Access(access) => self.execute_access(&mut state, at, access)?,
            InstructionKind::Fence { scope, semantics } => {
                let step = self.new_step(&state, at);
                self.push_step(at, StepKind::Fence(*scope, *semantics), step, false);
            }
            // A barrier that some runs do not reach may block others.
            InstructionKind::ControlBarrier(_) if state.guard == Bit::TRUE => {
                let step = self.new_step(&state, at);
                self.push_step(at, StepKind::ControlBarrier, step, false);
            }
            InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_) => return None,
            InstructionKind::Compute(compute) => self.execute_compute(&mut state, compute),
            InstructionKind::Flow(Flow::Label(_)) => {
                let head = LoopHead {
                    first_step: self.steps.len(),
                    registers: state.registers.clone(),
                    conditions: state.conditions.clone(),
                };
                state.heads.insert(at, head);
            }
            InstructionKind::Flow(Flow::Goto(target)) => {
                return self.take_jump(state, &instance, *target);
            }
            InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                let type_of = |register| self.test.register_type(self.thread, register);
                let scalar = comparison_type(type_of, *left, *right);
                let sides = [*left, *right].map(|side| operand_value(&state, side, scalar));
                let taken = self.compare(*relation, &sides, scalar);
                return self.branch(state, &instance, *target, taken);
            }
            InstructionKind::Flow(Flow::BranchIf { condition, target }) => {
                let TracedCondition { holds, sources } = state.conditions[usize::from(condition.0)].clone();
                // The code up to the target executes only if the branch is not taken.
                let end = label_position(&self.test.thread(self.thread).instructions, *target)?;
                self.add_control_dependency(&mut state, &sources, end);
                return self.branch(state, &instance, *target, holds);
            }
        }
        self.add_state(state, at + 1, instance.taken);
        Some(())
    }

    fn branch(&mut self, state: MergedState, instance: &Instance, target: LabelId, taken: Bit) -> Option<()> {
        let mut jumped = state.clone();
        jumped.guard = self.circuit.and(state.guard, taken);
        self.take_jump(jumped, instance, target)?;
        let guard = self.circuit.and(state.guard, !taken);
        self.add_state(MergedState { guard, ..state }, instance.instruction + 1, instance.taken.clone());
        Some(())
    }

    fn take_jump(&mut self, mut state: MergedState, instance: &Instance, target: LabelId) -> Option<()> {
        let position = label_position(&self.test.thread(self.thread).instructions, target)?;
        let mut taken = instance.taken.clone();
        if position <= instance.instruction {
            let mut is_redundant = self.is_iteration_redundant(&state, position);
            if self.possible.ignores_branches && is_redundant == Bit::TRUE {
                is_redundant = self.circuit.input();
            }
            let guard = self.circuit.and(state.guard, is_redundant);
            self.finish(MergedState { guard, ..state.clone() });
            state.guard = self.circuit.and(state.guard, !is_redundant);
            let turns = taken.entry(instance.instruction).or_default();
            *turns += 1;
            if *turns >= self.unroll {
                self.cut = join_guards(self.circuit, self.cut, state.guard);
                self.finish(state);
                return Some(());
            }
        }
        self.add_state(state, position, taken);
        Some(())
    }

    /// Returns a bit that holds only if the iteration since the last visit of a label changed nothing.
    fn is_iteration_redundant(&mut self, state: &MergedState, label: usize) -> Bit {
        let Some(head) = state.heads.get(&label) else { return Bit::FALSE };
        let (mut unchanged, mut executed) = (Vec::new(), Vec::new());
        for index in head.first_step..self.steps.len() {
            let step = &self.steps[index];
            if self.circuit.and(step.guard, state.guard) == Bit::FALSE {
                continue;
            }
            executed.push(step.guard);
            let path_step = &self.path_steps[index];
            let has_use = self.facts.may_race.get(usize::from(path_step.instruction)) == Some(&true);
            let is_removable = match (&path_step.kind, &step.read, &step.written) {
                _ if has_use => Bit::FALSE,
                (StepKind::Read(_) | StepKind::Rmw(_, None) | StepKind::Fence(..), ..) => Bit::TRUE,
                (StepKind::Rmw(..), Some(read), Some(written)) => self.circuit.equals(read, written),
                (StepKind::Write(memory, _), ..) => Bit::from(self.facts.is_unread(memory.extent.storage)),
                (
                    StepKind::Rmw(..)
                    | StepKind::ControlBarrier
                    | StepKind::SplitBarrier
                    | StepKind::Subgroup(_)
                    | StepKind::System,
                    ..,
                ) => Bit::FALSE,
            };
            unchanged.push(self.circuit.implies(step.guard, is_removable));
        }
        let (live, strongly_live) = (self.facts.live.get(label), self.facts.strongly_live.get(label));
        let (Some(live), Some(strongly_live)) = (live.cloned(), strongly_live.cloned()) else {
            return Bit::FALSE;
        };
        let are_live_equal = self.are_registers_equal(state, head, &live);
        let are_strongly_live_equal = self.are_registers_equal(state, head, &strongly_live);
        let waits = self.circuit.any(&executed);
        let waits_unchanged = self.circuit.and(waits, are_strongly_live_equal);
        unchanged.push(self.circuit.or(are_live_equal, waits_unchanged));
        self.circuit.all(&unchanged)
    }

    fn are_registers_equal(&mut self, state: &MergedState, head: &LoopHead, live: &[bool]) -> Bit {
        let mut equal = Vec::new();
        for register in (0..live.len()).filter(|register| live[*register]) {
            let (now, before) = (&state.registers[register], &head.registers[register]);
            let (condition, earlier) = (&state.conditions[register], &head.conditions[register]);
            if self.tracks_dependencies
                && (now.sources != before.sources || condition.sources != earlier.sources)
            {
                return Bit::FALSE;
            }
            equal.push(self.circuit.equals(&now.value, &before.value));
            equal.push(self.circuit.iff(condition.holds, earlier.holds));
        }
        self.circuit.all(&equal)
    }

    /// Makes the steps that follow, up to the instruction at `end`, control-dependent on reads.
    fn add_control_dependency(&mut self, state: &mut MergedState, reads: &Dependencies, end: usize) {
        if self.tracks_dependencies && !reads.is_empty() {
            add_dependencies(self.circuit, state.control.entry(end).or_default(), reads);
            self.mark_decisive(state.guard, reads);
        }
    }

    /// Marks reads as decisive, given that a guard holds.
    fn mark_decisive(&mut self, guard: Bit, reads: &Dependencies) {
        let reads = reads.iter().map(|(step, bit)| (*step, self.circuit.and(guard, *bit))).collect();
        add_dependencies(self.circuit, &mut self.decisive, &reads);
    }

    fn execute_compute(&mut self, state: &mut MergedState, compute: &Compute) {
        match compute {
            Compute::Compare { destination, relation, left, right } => {
                let scalar = ScalarType::default();
                let sides = [*left, *right].map(|side| operand_value(state, side, scalar));
                let holds = self.compare(*relation, &sides, UNSIGNED);
                let [left, right] = sides;
                let mut sources = left.sources;
                add_dependencies(self.circuit, &mut sources, &right.sources);
                state.conditions[usize::from(destination.0)] = TracedCondition { holds, sources };
            }
            Compute::Move { destination, value } => {
                state.registers[usize::from(destination.0)] =
                    operand_value(state, *value, ScalarType::default());
            }
            Compute::Arithmetic { destination, operation, left, right } => {
                let scalar = self.test.register_type(self.thread, *destination);
                let (left, right) =
                    (operand_value(state, *left, scalar), operand_value(state, *right, scalar));
                state.registers[usize::from(destination.0)] = self.apply(*operation, &left, &right, scalar);
            }
        }
    }

    fn compare(&mut self, relation: Comparison, sides: &[TracedValue; 2], scalar: ScalarType) -> Bit {
        if self.possible.ignores_branches && sides.iter().any(|side| !side.sources.is_empty()) {
            return self.circuit.input();
        }
        compare(self.circuit, relation, &sides[0].value, &sides[1].value, scalar)
    }

    /// Returns the result of an operation, with the sources of both operands.
    fn apply(
        &mut self,
        operation: ArithmeticOperation,
        left: &TracedValue,
        right: &TracedValue,
        scalar: ScalarType,
    ) -> TracedValue {
        let value = apply_operation(self.circuit, operation, &left.value, &right.value, scalar);
        // A value that no operand changes depends on none of them, except for models with dependencies.
        if value.to_constant().is_some() && !self.possible.ignores_branches && !self.tracks_dependencies {
            return TracedValue { value, sources: Dependencies::new() };
        }
        let mut sources = left.sources.clone();
        add_dependencies(self.circuit, &mut sources, &right.sources);
        TracedValue { value, sources }
    }

    fn execute_access(&mut self, state: &mut MergedState, at: usize, access: &MemoryAccess) -> Option<()> {
        if access.performer == Performer::Cooperative {
            return None;
        }
        let address = access.place.address.filter(|_| self.tracks_dependencies);
        let address = address.map(|register| state.registers[usize::from(register.0)].sources.clone());
        let address = address.unwrap_or_default();
        self.mark_decisive(state.guard, &address);
        for (index, lane) in access.scalar_accesses().enumerate() {
            self.execute_lane(state, at, &lane, &address, index > 0)?;
        }
        Some(())
    }

    /// An access of one number.
    fn execute_lane(
        &mut self,
        state: &mut MergedState,
        at: usize,
        access: &MemoryAccess,
        address: &Dependencies,
        is_continuation: bool,
    ) -> Option<()> {
        let (test, place, scalar) = (self.test, &access.place, access.place.scalar_type(self.test));
        let extent = Extent::from_place(test, place);
        let memory = |access| StepAccess { location: place.location, class: place.class, access, extent };
        let own = memory(access.strength);
        let start = GuardedStep { address: address.clone(), ..self.new_step(state, at) };
        let guard = state.guard;
        let new_read = |me: &mut Self| me.new_read(extent.storage, scalar);
        let source = self.steps.len();
        let traced =
            |value: BitVector| TracedValue { value, sources: Dependencies::from([(source, Bit::TRUE)]) };
        let thread = self.thread;
        let register_type = |register| test.register_type(thread, register);
        let to_register = |register, read: &TracedValue| TracedValue {
            value: extend(&read.value, scalar, register_type(register)),
            sources: read.sources.clone(),
        };
        let stored_value = |state: &MergedState, operand| {
            let value = operand_value(state, operand, scalar);
            TracedValue { value: low_bits(&value.value, scalar), sources: value.sources }
        };
        match access.kind {
            AccessKind::Load(destinations) => {
                let register = destinations.first();
                let read = traced(new_read(self));
                let step = GuardedStep { read: Some(read.value.clone()), ..start.clone() };
                self.push_step(at, StepKind::Read(own), step, is_continuation);
                state.registers[usize::from(register.0)] = to_register(register, &read);
            }
            AccessKind::Store(values) => {
                let TracedValue { value, sources } = stored_value(state, values.first());
                let step = GuardedStep { written: Some(value), sources, ..start.clone() };
                let kind = StepKind::Write(own, SymbolicValue::Known(Value(0)));
                self.push_step(at, kind, step, is_continuation);
            }
            AccessKind::Await { destination, value: awaited } => {
                let awaited = operand_value(state, awaited, scalar);
                let read = traced(new_read(self));
                let step = GuardedStep { read: Some(read.value.clone()), ..start.clone() };
                self.push_step(at, StepKind::Read(own), step, is_continuation);
                let is_equal =
                    compare(self.circuit, Comparison::Equal, &read.value, &awaited.value, UNSIGNED);
                self.requirements.push(vec![!guard, is_equal]);
                // All that follows an await executes only if the await succeeds.
                let mut decisive = read.sources.clone();
                add_dependencies(self.circuit, &mut decisive, &awaited.sources);
                self.add_control_dependency(state, &decisive, usize::MAX);
                state.registers[usize::from(destination.0)] = to_register(destination, &read);
            }
            AccessKind::Rmw { destination, operation } => {
                let read = traced(new_read(self));
                let mut result = read.clone();
                let mut guard = guard;
                let mut written;
                // An addition of a constant shows its amount: see `RmwChain::increments`.
                let mut stored = SymbolicValue::Known(Value(0));
                match operation {
                    RmwOperation::Exchange(operand) => written = Some(stored_value(state, operand)),
                    RmwOperation::Fetch(operation, operand) => {
                        if let Operand::Constant(amount) = operand {
                            let earlier = self.path_steps.iter().filter(|step| step.kind.is_read());
                            let own = SymbolicValue::Read(earlier.count() as ReadIndex);
                            let amount = SymbolicValue::Known(Value::from_constant(amount, scalar));
                            stored = SymbolicValue::new_operation(operation, scalar, own, amount);
                        }
                        let operand = operand_value(state, operand, scalar);
                        written = Some(self.apply(operation, &read, &operand, scalar));
                    }
                    RmwOperation::CompareExchange { compare: expected, value, unequal } => {
                        let expected = operand_value(state, expected, scalar).value;
                        written = Some(stored_value(state, value));
                        // Success and failure are separate steps: failure has neither a write nor the same semantics.
                        let succeeds = self.circuit.input();
                        let strength = match access.strength {
                            Access::Atomic { scope, .. } => Access::Atomic { scope, semantics: unequal },
                            plain @ (Access::Private | Access::NonPrivate | Access::Coherent { .. }) => plain,
                        };
                        let failure = self.circuit.and(guard, !succeeds);
                        let found = new_read(self);
                        let is_equal = compare(self.circuit, Comparison::Equal, &found, &expected, scalar);
                        self.requirements.push(vec![!failure, !is_equal]);
                        guard = self.circuit.and(guard, succeeds);
                        let is_equal =
                            compare(self.circuit, Comparison::Equal, &read.value, &expected, scalar);
                        self.requirements.push(vec![!guard, is_equal]);
                        result.value = self.circuit.select(succeeds, &read.value, &found);
                        result.sources = Dependencies::from([(source, succeeds), (source + 1, !succeeds)]);
                        let step = GuardedStep {
                            guard,
                            read: Some(read.value.clone()),
                            written: written.as_ref().map(|written| written.value.clone()),
                            sources: written.take().map(|written| written.sources).unwrap_or_default(),
                            ..start.clone()
                        };
                        let kind = StepKind::Rmw(own, Some(SymbolicValue::Known(Value(0))));
                        self.push_step(at, kind, step, is_continuation);
                        let failed = GuardedStep { guard: failure, read: Some(found), ..start.clone() };
                        self.push_step(at, StepKind::Rmw(memory(strength), None), failed, is_continuation);
                    }
                }
                if let Some(TracedValue { value, sources }) = written {
                    let step = GuardedStep {
                        read: Some(read.value.clone()),
                        written: Some(value),
                        sources,
                        ..start
                    };
                    self.push_step(at, StepKind::Rmw(own, Some(stored)), step, is_continuation);
                }
                if let Some(register) = destination {
                    state.registers[usize::from(register.0)] = to_register(register, &result);
                }
            }
        }
        Some(())
    }

    /// Returns the value of a new read.
    fn new_read(&mut self, storage: LocationId, scalar: ScalarType) -> BitVector {
        let possible = self.possible.of_storage(storage);
        new_read_value(self.circuit, self.requirements, possible, scalar.bits())
    }

    /// Returns a step of the instruction at `at`, without an access.
    fn new_step(&mut self, state: &MergedState, at: usize) -> GuardedStep {
        let mut control = Dependencies::new();
        for (_, reads) in state.control.range(at + 1..) {
            add_dependencies(self.circuit, &mut control, reads);
        }
        let none = Dependencies::new();
        GuardedStep {
            guard: state.guard,
            read: None,
            written: None,
            sources: none.clone(),
            address: none,
            control,
        }
    }

    fn push_step(&mut self, at: usize, kind: StepKind, step: GuardedStep, is_continuation: bool) {
        let occurrence = self.executed[at];
        self.executed[at] += 1;
        self.path_steps.push(ThreadStep {
            instruction: at as u16,
            occurrence,
            kind,
            cooperative: false,
            is_continuation,
            address: Vec::new(),
            control: Vec::new(),
        });
        self.steps.push(step);
    }
}

fn operand_value(state: &MergedState, operand: Operand, scalar: ScalarType) -> TracedValue {
    match operand {
        Operand::Constant(constant) => TracedValue {
            value: to_constant(Value::from_constant(constant, scalar)),
            sources: Dependencies::new(),
        },
        Operand::Register(register) => state.registers[usize::from(register.0)].clone(),
    }
}
