//! Symbolic execution of one thread: its control-flow paths, with constraints on the values read.

#![deny(clippy::wildcard_enum_match_arm)]

mod carried_values;
mod repeated_iterations;
pub(crate) mod unroll;

use litmus::{
    Access, AccessKind, ArithmeticOperation, Comparison, Compute, Flow, Id, InstructionKind, LabelId,
    LocationId, MemoryAccess, NoEntry, Operand, Performer, RegisterId, RmwOperation, ScalarType, Scope,
    Semantics, StorageClass, Test, ThreadId,
};

use self::carried_values::PathPosition;
use self::repeated_iterations::{LoopFacts, LoopReductions, RepeatedIterations};
use crate::PredictError;
use crate::cells::Extent;
use crate::registers::{comparison_type, label_position, operand_type};
use crate::symbolic::{Constraint, ReadIndex, SymbolicValue};

/// One path of a thread.
#[derive(Clone, Debug)]
pub struct ThreadPath {
    pub(crate) steps: Vec<ThreadStep>,
    /// Conditions under which control takes this path.
    pub(crate) constraints: Vec<Constraint<ReadIndex>>,
    /// Values of all registers at the end.
    pub(crate) registers: Vec<SymbolicValue<ReadIndex>>,
    /// False if a loop ended the path: at the loop bound, or because no further iteration can change
    /// anything.
    pub terminated: bool,
    /// True if the loop bound ended the path, so that longer paths were not visited.
    pub(crate) truncated: bool,
    /// Reads that a branch, an await or an address depends on, even if no event follows.
    pub(crate) decisive_reads: Vec<ReadIndex>,
    /// The taken branches, by instruction.
    pub(crate) taken_branches: Vec<u16>,
    /// True if it represents paths on which values depend on other reads ([`carried_values`]).
    pub(crate) replaces_dependencies: bool,
}

impl ThreadPath {
    /// Returns the outcome of a comparison for equality if an earlier constraint of the path decides it.
    fn decided_equality(&self, comparison: &Constraint<ReadIndex>) -> Option<bool> {
        let is_equal = comparison.requires_equality()?;
        let sides = (&comparison.left, &comparison.right);
        let is_same = |known: &&Constraint<ReadIndex>| {
            known.scalar.bits() == comparison.scalar.bits()
                && (sides == (&known.left, &known.right) || sides == (&known.right, &known.left))
        };
        let mut known = self.constraints.iter().filter(is_same);
        known.find_map(Constraint::requires_equality).map(|known| known == is_equal)
    }
}

/// A step of a path, in program order.
#[derive(Clone, Debug)]
pub(crate) struct ThreadStep {
    /// Index into the thread's instructions.
    pub(crate) instruction: u16,
    /// Number of earlier executions of the instruction on this path.
    pub(crate) occurrence: u16,
    pub(crate) kind: StepKind,
    /// True if an unspecified invocation of the subgroup performs the step (cooperative access).
    pub(crate) cooperative: bool,
    /// True for a further component of the preceding step's vector access.
    pub(crate) is_continuation: bool,
    /// Reads that its address depends on.
    pub(crate) address: Vec<ReadIndex>,
    /// Reads that the step is control-dependent on.
    pub(crate) control: Vec<ReadIndex>,
}

/// The operation of a step.
#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Read(StepAccess),
    Write(StepAccess, SymbolicValue<ReadIndex>),
    /// The read half comes first; `None` where a compare-exchange fails and writes nothing.
    Rmw(StepAccess, Option<SymbolicValue<ReadIndex>>),
    Fence(Scope, Semantics),
    /// The index refers to the instruction, which holds the barrier.
    ControlBarrier,
    /// A half of a split barrier; the instruction holds it.
    SplitBarrier,
    /// A subgroup operation. It is not an event, but the lanes of its tangle wait for each other.
    ///
    /// Its result counts as a read of the thread, even if other lanes read the inputs. The value is the
    /// lane's own operand.
    Subgroup(Option<SymbolicValue<ReadIndex>>),
    /// An operation of the API, a shader call or an end of an interlocked section; the instruction holds it.
    System,
}

impl StepKind {
    /// Returns true if the result counts as a read of the thread.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, StepKind::Read(_) | StepKind::Rmw(..) | StepKind::Subgroup(_))
    }
}

/// The memory access of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepAccess {
    pub(crate) location: LocationId,
    pub(crate) class: StorageClass,
    pub(crate) access: Access,
    pub(crate) extent: Extent,
}

/// Bound on the paths of one thread.
const MAX_PATHS: usize = 4096;

/// Enumerates the paths of a thread; each back edge is taken less than `unroll` times, apart from redundant
/// iterations ([`repeated_iterations`]).
pub fn enumerate_paths(
    test: &Test,
    thread: ThreadId,
    unroll: u32,
    knows_text: bool,
) -> Result<Vec<ThreadPath>, PredictError> {
    enumerate_observed_paths(
        test,
        thread,
        unroll,
        &vec![true; test.thread(thread).registers.len()],
        knows_text,
    )
}

/// As [`enumerate_paths`], for an observer of these registers of the thread alone.
///
/// A loop iteration may change the other registers and still be left out, unless later code reads them.
pub(crate) fn enumerate_observed_paths(
    test: &Test,
    thread: ThreadId,
    unroll: u32,
    observed: &[bool],
    knows_text: bool,
) -> Result<Vec<ThreadPath>, PredictError> {
    let reductions = if knows_text { LoopReductions::All } else { LoopReductions::AnyModel };
    enumerate_reduced_paths(test, thread, unroll, observed, reductions)
}

/// Returns the paths of a thread with [`LoopReductions::UnreadStores`]; `None` if the loop bound cuts one off.
fn enumerate_complete_paths(test: &Test, thread: ThreadId, unroll: u32) -> Option<Vec<ThreadPath>> {
    let observed = vec![true; test.thread(thread).registers.len()];
    let paths =
        enumerate_reduced_paths(test, thread, unroll, &observed, LoopReductions::UnreadStores).ok()?;
    paths.iter().all(|path| !path.truncated).then_some(paths)
}

fn enumerate_reduced_paths(
    test: &Test,
    thread: ThreadId,
    unroll: u32,
    observed: &[bool],
    reductions: LoopReductions,
) -> Result<Vec<ThreadPath>, PredictError> {
    let registers: Vec<_> = (0..test.thread(thread).registers.len())
        .map(|r| SymbolicValue::Known(test.initial_register(thread, RegisterId(r as u16))))
        .collect();
    let length = test.thread(thread).instructions.len();
    let instructions = &test.thread(thread).instructions;
    let jumps = instructions.iter().any(|i| matches!(i.kind, InstructionKind::Flow(_)));
    let loops =
        if jumps { LoopFacts::new(test, thread, observed, unroll, reductions) } else { LoopFacts::default() };
    let mut enumerator = PathEnumerator { test, thread, unroll, loops, finished_paths: Vec::new() };
    let start = ThreadPath {
        steps: Vec::with_capacity(length),
        constraints: Vec::new(),
        registers,
        terminated: true,
        truncated: false,
        decisive_reads: Vec::new(),
        taken_branches: Vec::new(),
        replaces_dependencies: false,
    };
    enumerator.enumerate_from(PartialPath {
        next_instruction: 0,
        path: start,
        reads: 0,
        executed: vec![0; length],
        jumps: vec![0; if jumps { length } else { 0 }],
        loop_heads: Vec::new(),
        repeated_iterations: Vec::new(),
        comparisons: Comparisons::default(),
        control: Vec::new(),
    })?;
    enumerator.finished_paths.retain(is_feasible);
    Ok(enumerator.finished_paths)
}

/// Returns true if control may take the path, as far as single reads decide: the constraints on one read must
/// be compatible.
fn is_feasible(path: &ThreadPath) -> bool {
    let pinned = path.constraints.iter().filter_map(|constraint| {
        let equal = constraint.requires_equality() == Some(true);
        match (&constraint.left, &constraint.right) {
            (SymbolicValue::Read(read), SymbolicValue::Known(value)) | (SymbolicValue::Known(value), SymbolicValue::Read(read))
                // A number with the same value in every type.
                if equal && constraint.scalar.bits() >= 32 && value.0 < 1 << 31 =>
            {
                Some((*read, *value))
            }
            _ => None,
        }
    });
    pinned.into_iter().all(|(pinned, value)| {
        let meets = |other: &Constraint<ReadIndex>| {
            other.is_satisfied(&mut |read| (read == pinned).then_some(value)) != Some(false)
        };
        path.constraints.iter().all(meets)
    })
}

struct PathEnumerator<'a> {
    test: &'a Test,
    thread: ThreadId,
    unroll: u32,
    loops: LoopFacts,
    finished_paths: Vec<ThreadPath>,
}

#[derive(Clone)]
struct PartialPath {
    next_instruction: usize,
    path: ThreadPath,
    reads: ReadIndex,
    executed: Vec<u16>,
    jumps: Vec<u32>,
    /// The state at the last visit of each label.
    loop_heads: Vec<LoopHead>,
    /// The redundant iterations of each loop.
    repeated_iterations: Vec<RepeatedIterations>,
    comparisons: Comparisons,
    /// Reads that decide if control reaches the code before an instruction (control dependencies).
    control: Vec<(usize, Vec<ReadIndex>)>,
}

/// The state of a path at a loop head.
#[derive(Clone)]
struct LoopHead {
    label: usize,
    position: PathPosition,
    registers: Vec<SymbolicValue<ReadIndex>>,
    comparisons: Comparisons,
    /// The visit before this one.
    previous: Option<Box<LoopHead>>,
}

/// The comparison that last assigned each condition register.
#[derive(Clone, Default)]
struct Comparisons(Vec<(RegisterId, Constraint<ReadIndex>)>);

impl Comparisons {
    fn comparison_of(&self, register: RegisterId) -> Option<&Constraint<ReadIndex>> {
        self.0.iter().find(|(known, _)| *known == register).map(|(_, comparison)| comparison)
    }

    fn assign(&mut self, register: RegisterId, comparison: Constraint<ReadIndex>) {
        self.0.retain(|(known, _)| *known != register);
        self.0.push((register, comparison));
    }
}

impl PathEnumerator<'_> {
    fn enumerate_from(&mut self, start: PartialPath) -> Result<(), PredictError> {
        let thread = self.test.thread(self.thread);
        let mut open = Vec::new();
        let mut next = Some(start);
        while let Some(mut state) = next {
            while let Some(instruction) = thread.instructions.get(state.next_instruction) {
                let at = state.next_instruction;
                state.next_instruction += 1;
                if !self.execute(&mut state, at, &instruction.kind, &mut open)? {
                    break;
                }
                if open.len() + self.finished_paths.len() > MAX_PATHS {
                    return Err(PredictError::TooManyPaths { thread: thread.number, bound: MAX_PATHS });
                }
            }
            self.finished_paths.push(state.path);
            next = open.pop();
        }
        Ok(())
    }

    /// Executes an instruction and adds the alternative paths to the open ones; false if the path ends.
    fn execute(
        &mut self,
        state: &mut PartialPath,
        at: usize,
        kind: &InstructionKind,
        open: &mut Vec<PartialPath>,
    ) -> Result<bool, PredictError> {
        match kind {
            InstructionKind::Access(access) => self.execute_access(state, at, access, open),
            InstructionKind::Fence { scope, semantics } => {
                state.push_step(at, StepKind::Fence(*scope, *semantics));
            }
            InstructionKind::ControlBarrier(_) => state.push_step(at, StepKind::ControlBarrier),
            InstructionKind::SplitBarrier(_) => state.push_step(at, StepKind::SplitBarrier),
            InstructionKind::Subgroup(operation) => {
                let input =
                    operation.value.map(|operand| operand_value(state, operand, ScalarType::default()));
                let result = SymbolicValue::Read(state.reads);
                state.assign(operation.destination, |_| result);
                state.push_step(at, StepKind::Subgroup(input));
            }
            InstructionKind::System(_) | InstructionKind::ShaderCall(_) | InstructionKind::Interlock(_) => {
                state.push_step(at, StepKind::System);
            }
            InstructionKind::Compute(compute) => self.execute_compute(state, compute),
            InstructionKind::Flow(flow) => return self.execute_flow(state, at, flow, open),
        }
        Ok(true)
    }

    /// Follows a label or jump; false if the path ends.
    fn execute_flow(
        &mut self,
        state: &mut PartialPath,
        at: usize,
        flow: &Flow,
        open: &mut Vec<PartialPath>,
    ) -> Result<bool, PredictError> {
        match flow {
            Flow::Label(_) => {
                state.record_loop_head(at);
                Ok(true)
            }
            Flow::Goto(target) => self.take_jump(state, at, *target),
            Flow::Branch { relation, left, right, target } => {
                let scalar = comparison_type(self.type_of(), *left, *right);
                let (left, right) =
                    (operand_value(state, *left, scalar), operand_value(state, *right, scalar));
                let taken = Constraint { relation: *relation, holds: true, left, right, scalar };
                self.branch(state, at, *target, taken, open)
            }
            Flow::BranchIf { condition, target } => {
                // A register that no comparison has assigned is 0.
                let Some(comparison) = state.comparisons.comparison_of(*condition).cloned() else {
                    return Ok(true);
                };
                // The code up to the branch target executes only if the branch is not taken, so it
                // is control-dependent on these reads.
                let reads = collect_reads([&comparison.left, &comparison.right]);
                state.add_control_dependency(&reads, self.label_position(*target)?);
                self.branch(state, at, *target, comparison, open)
            }
        }
    }

    /// Takes a branch, or not, or both if the comparison is unknown; false if the path ends.
    fn branch(
        &mut self,
        state: &mut PartialPath,
        at: usize,
        target: LabelId,
        taken: Constraint<ReadIndex>,
        open: &mut Vec<PartialPath>,
    ) -> Result<bool, PredictError> {
        // A branch on the result of a compare-exchange repeats its comparison.
        match taken.is_satisfied(&mut |_| None).or_else(|| state.path.decided_equality(&taken)) {
            Some(false) => Ok(true),
            Some(true) => {
                state.path.taken_branches.push(at as u16);
                self.take_jump(state, at, target)
            }
            None => {
                // Both outcomes are paths. The taken one is stored, the other one continues in
                // place.
                let mut jumped = state.clone();
                jumped.path.taken_branches.push(at as u16);
                jumped.path.constraints.push(taken.clone());
                if self.take_jump(&mut jumped, at, target)? {
                    open.push(jumped);
                } else {
                    self.finished_paths.push(jumped.path);
                }
                state.path.constraints.push(Constraint { holds: false, ..taken });
                Ok(true)
            }
        }
    }

    fn execute_compute(&self, state: &mut PartialPath, compute: &Compute) {
        match compute {
            Compute::Compare { destination, relation, left, right } => {
                let scalar = ScalarType::default();
                let comparison = Constraint {
                    relation: *relation,
                    holds: true,
                    left: operand_value(state, *left, scalar),
                    right: operand_value(state, *right, scalar),
                    scalar: UNSIGNED,
                };
                // A comparison is stored unevaluated: only `BranchIf` reads a condition register.
                state.comparisons.assign(*destination, comparison);
            }
            Compute::Move { destination, value: moved } => {
                state.path.registers[usize::from(destination.0)] =
                    operand_value(state, *moved, ScalarType::default());
            }
            Compute::Arithmetic { destination, operation, left, right } => {
                let scalar = self.test.register_type(self.thread, *destination);
                // Adding zero copies a register, unless the value may be wider than the result.
                let is_copy = matches!(operation, ArithmeticOperation::Add)
                    && *right == Operand::Constant(0)
                    && [scalar, operand_type(self.type_of(), *left)]
                        .iter()
                        .all(|of| *of == ScalarType::default())
                    && self.test.locations.iter().all(|location| location.scalar_type().bits() <= 32);
                let (left, right) =
                    (operand_value(state, *left, scalar), operand_value(state, *right, scalar));
                state.path.registers[usize::from(destination.0)] = if is_copy {
                    left
                } else {
                    SymbolicValue::new_operation(*operation, scalar, left, right)
                };
            }
        }
    }

    /// Performs an access; a compare-exchange adds the path on which it fails.
    fn execute_access(
        &self,
        state: &mut PartialPath,
        at: usize,
        access: &MemoryAccess,
        open: &mut Vec<PartialPath>,
    ) {
        let address = access.place.address.map_or(Vec::new(), |register| {
            let reads = collect_reads([&state.path.registers[usize::from(register.0)]]);
            state.path.decisive_reads.extend(&reads);
            reads
        });
        for (index, lane) in access.scalar_accesses().enumerate() {
            self.execute_lane(state, at, &lane, &address, open);
            if let Some(step) = state.path.steps.last_mut() {
                step.cooperative = access.performer == Performer::Cooperative;
                if index > 0 {
                    // The instruction was executed once, so the counter is reset.
                    state.executed[at] -= 1;
                    step.occurrence -= 1;
                    step.is_continuation = true;
                }
            }
        }
    }

    /// An access of one number.
    fn execute_lane(
        &self,
        state: &mut PartialPath,
        at: usize,
        access: &MemoryAccess,
        address: &[ReadIndex],
        open: &mut Vec<PartialPath>,
    ) {
        let (test, place, scalar) = (self.test, &access.place, access.place.scalar_type(self.test));
        let memory = |access| StepAccess {
            location: place.location,
            class: place.class,
            access,
            extent: Extent::from_place(test, place),
        };
        let own = memory(access.strength);
        let stored_value = |state: &PartialPath, operand| {
            truncate_to_access(test, operand_value(state, operand, scalar), operand, scalar)
        };
        let read_value = SymbolicValue::Read(state.reads);
        let to_register = |register, read_value| {
            SymbolicValue::extend(read_value, scalar, test.register_type(self.thread, register))
        };
        match access.kind {
            AccessKind::Load(destinations) => {
                let register = destinations.first();
                state.path.registers[usize::from(register.0)] = to_register(register, read_value);
                state.push_addressed_step(at, StepKind::Read(own), address);
            }
            AccessKind::Store(values) => {
                let written = stored_value(state, values.first());
                state.push_addressed_step(at, StepKind::Write(own, written), address);
            }
            AccessKind::Await { destination, value: awaited } => {
                let awaited = operand_value(state, awaited, scalar);
                state.push_addressed_step(at, StepKind::Read(own), address);
                // Everything after an await executes only if the await succeeds.
                state.add_control_dependency(&collect_reads([&read_value, &awaited]), usize::MAX);
                state.path.constraints.push(Constraint {
                    relation: Comparison::Equal,
                    holds: true,
                    left: read_value.clone(),
                    right: awaited,
                    scalar: UNSIGNED,
                });
                state.path.registers[usize::from(destination.0)] = to_register(destination, read_value);
            }
            AccessKind::Rmw { destination, operation } => {
                let written = match operation {
                    RmwOperation::Exchange(operand) => stored_value(state, operand),
                    RmwOperation::Fetch(operation, operand) => SymbolicValue::new_operation(
                        operation,
                        scalar,
                        read_value.clone(),
                        operand_value(state, operand, scalar),
                    ),
                    RmwOperation::CompareExchange { value: operand, .. } => stored_value(state, operand),
                };
                let mut succeeds = None;
                if let RmwOperation::CompareExchange { compare, unequal, .. } = operation {
                    // The failing case only reads, with its own semantics.
                    let strength = match access.strength {
                        Access::Atomic { scope, .. } => Access::Atomic { scope, semantics: unequal },
                        plain @ (Access::Private | Access::NonPrivate | Access::Coherent { .. }) => plain,
                    };
                    let equal = Constraint {
                        relation: Comparison::Equal,
                        holds: true,
                        left: read_value.clone(),
                        right: operand_value(state, compare, scalar),
                        scalar,
                    };
                    // Success and failure are separate paths, since failure has neither a write nor
                    // the same semantics.
                    let mut failed = state.clone();
                    failed.push_addressed_step(at, StepKind::Rmw(memory(strength), None), address);
                    failed.assign(destination, |register| to_register(register, read_value.clone()));
                    failed.path.constraints.push(Constraint { holds: false, ..equal.clone() });
                    open.push(failed);
                    succeeds = Some(equal);
                }
                state.assign(destination, |register| to_register(register, read_value));
                state.push_addressed_step(at, StepKind::Rmw(own, Some(written)), address);
                state.path.constraints.extend(succeeds);
            }
        }
    }

    /// Takes a jump; false if the loop bound ends the path.
    fn take_jump(&self, state: &mut PartialPath, at: usize, target: LabelId) -> Result<bool, PredictError> {
        let position = self.label_position(target)?;
        if position <= at {
            let is_cut = match state.redundant_iteration_uses(position, &self.loops) {
                Some(iteration) => {
                    state.path.replaces_dependencies |= iteration.replaces_carried_value();
                    // Iterations that change nothing represent the loop completely, so the path is not cut.
                    if state.repeat_iteration(position, &iteration) { None } else { Some(false) }
                }
                None => {
                    state.jumps[at] += 1;
                    (state.jumps[at] >= self.unroll).then_some(true)
                }
            };
            if let Some(is_cut) = is_cut {
                state.path.terminated = false;
                state.path.truncated = is_cut;
                return Ok(false);
            }
        }
        state.next_instruction = position;
        Ok(true)
    }

    /// Returns the position of a label.
    fn label_position(&self, target: LabelId) -> Result<usize, PredictError> {
        label_position(&self.test.thread(self.thread).instructions, target)
            .ok_or(PredictError::NoEntry(NoEntry { of: LabelId::OF, index: target.index() }))
    }

    fn type_of(&self) -> impl Fn(RegisterId) -> ScalarType {
        |register| self.test.register_type(self.thread, register)
    }
}

impl PartialPath {
    /// Records the state at a label.
    fn record_loop_head(&mut self, at: usize) {
        let known = self.loop_heads.iter().position(|head| head.label == at);
        let previous = known.map(|index| Box::new(self.loop_heads.remove(index)));
        self.loop_heads.push(LoopHead {
            label: at,
            position: PathPosition::of(&self.path),
            registers: self.path.registers.clone(),
            comparisons: self.comparisons.clone(),
            previous: previous.map(|head| Box::new(LoopHead { previous: None, ..*head })),
        });
    }

    fn assign(
        &mut self,
        destination: Option<RegisterId>,
        value: impl FnOnce(RegisterId) -> SymbolicValue<ReadIndex>,
    ) {
        if let Some(destination) = destination {
            self.path.registers[usize::from(destination.0)] = value(destination);
        }
    }

    /// Makes the following steps, up to the instruction at `end`, control-dependent on `reads`.
    fn add_control_dependency(&mut self, reads: &[ReadIndex], end: usize) {
        self.path.decisive_reads.extend(reads);
        self.control.push((end, reads.to_vec()));
    }

    fn push_step(&mut self, at: usize, kind: StepKind) {
        self.push_addressed_step(at, kind, &[]);
    }

    fn push_addressed_step(&mut self, at: usize, kind: StepKind, address: &[ReadIndex]) {
        self.reads += ReadIndex::from(kind.is_read());
        let occurrence = self.executed[at];
        self.executed[at] += 1;
        let mut control: Vec<ReadIndex> =
            self.control.iter().filter(|(end, _)| at < *end).flat_map(|(_, reads)| reads.clone()).collect();
        control.sort_unstable();
        control.dedup();
        self.path.steps.push(ThreadStep {
            instruction: at as u16,
            occurrence,
            kind,
            cooperative: false,
            is_continuation: false,
            address: address.to_vec(),
            control,
        });
    }
}

/// As signed 64-bit numbers, 32-bit values compare unsigned.
const UNSIGNED: ScalarType = ScalarType::U64;

/// Returns the reads that values depend on, without duplicates.
fn collect_reads<const N: usize>(values: [&SymbolicValue<ReadIndex>; N]) -> Vec<ReadIndex> {
    let mut reads = Vec::new();
    for value in values {
        value.for_each_read(&mut |read| reads.push(read));
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

fn operand_value(state: &PartialPath, operand: Operand, scalar: ScalarType) -> SymbolicValue<ReadIndex> {
    match operand {
        Operand::Constant(constant) => SymbolicValue::Known(litmus::Value::from_constant(constant, scalar)),
        Operand::Register(register) => state.path.registers[usize::from(register.0)].clone(),
    }
}

/// Returns the stored value: the low bytes if a register may be wider than the access.
fn truncate_to_access(
    test: &Test,
    value: SymbolicValue<ReadIndex>,
    operand: Operand,
    scalar: ScalarType,
) -> SymbolicValue<ReadIndex> {
    let wider = |other: ScalarType| other.bits() > scalar.bits();
    match operand {
        Operand::Register(_)
            if wider(ScalarType::default()) || test.locations.iter().any(|l| wider(l.scalar_type())) =>
        {
            value.extract_bytes(0, scalar.bits() / 8)
        }
        Operand::Constant(_) | Operand::Register(_) => value,
    }
}
