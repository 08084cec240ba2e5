//! Symbolic execution of one thread: its control-flow paths, with constraints on the values read.

#![deny(clippy::wildcard_enum_match_arm)]

mod repeated;

use litmus::{
    Access, AccessKind, BranchRelation, Compute, Flow, Id, InstructionKind, LabelId, LocationId,
    MemoryAccess, NoEntry, Operand, Performer, RegisterId, RmwOperation, ScalarType, Scope, Semantics,
    StorageClass, Test, ThreadId,
};

use self::repeated::{LoopFacts, RepeatedTurns};
use crate::PredictError;
use crate::cells::Extent;
use crate::symbolic::{Constraint, LocalRead, Symbolic};

/// One path of a thread.
#[derive(Clone, Debug)]
pub struct Path {
    pub(crate) steps: Vec<ThreadStep>,
    /// Conditions under which control takes this path.
    pub(crate) constraints: Vec<Constraint<LocalRead>>,
    /// Values of all registers at the end.
    pub(crate) registers: Vec<Symbolic<LocalRead>>,
    /// False if a loop ended the path: at the loop bound, or because no further iteration can change
    /// anything.
    pub terminated: bool,
    /// True if the loop bound ended the path, so that longer paths were not visited.
    pub(crate) cut: bool,
    /// Reads that a branch, an await or an address depends on, even if no event follows.
    pub(crate) decisive: Vec<LocalRead>,
    /// The taken branches, by instruction.
    pub(crate) skipped: Vec<u16>,
}

/// The path of a thread as far as it is chosen: this path, or this or a later one.
#[derive(Clone, Copy, Debug)]
pub enum PathChoice {
    /// This path.
    Path(usize),
    /// This or a later path.
    From(usize),
}

impl PathChoice {
    /// Returns the path, or the first that is still possible.
    pub(crate) fn first_path(self) -> usize {
        match self {
            PathChoice::Path(path) | PathChoice::From(path) => path,
        }
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
    pub(crate) continues: bool,
    /// Reads that its address depends on.
    pub(crate) address: Vec<LocalRead>,
    /// Reads that the step is control-dependent on.
    pub(crate) control: Vec<LocalRead>,
}

/// The operation of a step.
#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Read(StepAccess),
    Write(StepAccess, Symbolic<LocalRead>),
    /// The read half comes first; `None` where a compare-exchange fails and writes nothing.
    Rmw(StepAccess, Option<Symbolic<LocalRead>>),
    Fence(Scope, Semantics),
    /// The index refers to the instruction, which holds the barrier.
    ControlBarrier,
    /// A half of a split barrier; the instruction holds it.
    SplitBarrier,
    /// A subgroup operation. It is not an event, but the lanes of its tangle wait for each other.
    ///
    /// Its result counts as a read of the thread, even if other lanes read the inputs. The value is the
    /// lane's own operand.
    Subgroup(Option<Symbolic<LocalRead>>),
    /// An operation of the API, a shader call or an end of an interlocked section; the instruction holds it.
    System,
}

impl StepKind {
    /// Returns true if the result counts as a read of the thread.
    pub(crate) fn reads(&self) -> bool {
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
/// turns ([`repeated`]).
pub fn paths(
    test: &Test,
    thread: ThreadId,
    unroll: u32,
    knows_text: bool,
) -> Result<Vec<Path>, PredictError> {
    paths_observing(test, thread, unroll, &vec![true; test.thread(thread).registers.len()], knows_text)
}

/// As [`paths`], for an observer of these registers of the thread alone.
///
/// A loop iteration may change the other registers and still be left out, unless later code reads them.
pub(crate) fn paths_observing(
    test: &Test,
    thread: ThreadId,
    unroll: u32,
    observed: &[bool],
    knows_text: bool,
) -> Result<Vec<Path>, PredictError> {
    let registers: Vec<_> = (0..test.thread(thread).registers.len())
        .map(|r| Symbolic::Known(test.initial_register(thread, RegisterId(r as u16))))
        .collect();
    let length = test.thread(thread).instructions.len();
    let instructions = &test.thread(thread).instructions;
    let jumps = instructions.iter().any(|i| matches!(i.kind, InstructionKind::Flow(_)));
    let loops = if jumps { LoopFacts::new(test, thread, observed, knows_text) } else { LoopFacts::default() };
    let mut walker = PathWalker { test, thread, unroll, loops, done: Vec::new() };
    let start = Path {
        steps: Vec::with_capacity(length),
        constraints: Vec::new(),
        registers,
        terminated: true,
        cut: false,
        decisive: Vec::new(),
        skipped: Vec::new(),
    };
    walker.walk(PartialPath {
        at: 0,
        path: start,
        reads: 0,
        executed: vec![0; length],
        jumps: vec![0; if jumps { length } else { 0 }],
        heads: Vec::new(),
        repeated: Vec::new(),
        comparisons: Comparisons::default(),
        control: Vec::new(),
    })?;
    walker.done.retain(is_feasible);
    Ok(walker.done)
}

/// Returns true if control may take the path, as far as single reads decide: the constraints on one read must
/// be compatible.
fn is_feasible(path: &Path) -> bool {
    let pinned = path.constraints.iter().filter_map(|constraint| {
        let equal = match constraint.relation {
            BranchRelation::Equal => constraint.holds,
            BranchRelation::NotEqual => !constraint.holds,
            BranchRelation::Less
            | BranchRelation::LessOrEqual
            | BranchRelation::Greater
            | BranchRelation::GreaterOrEqual => false,
        };
        match (&constraint.left, &constraint.right) {
            (Symbolic::Read(read), Symbolic::Known(value)) | (Symbolic::Known(value), Symbolic::Read(read))
                // A number with the same value in every type.
                if equal && constraint.scalar.bits() >= 32 && value.0 < 1 << 31 =>
            {
                Some((*read, *value))
            }
            _ => None,
        }
    });
    pinned.into_iter().all(|(pinned, value)| {
        let meets = |other: &Constraint<LocalRead>| {
            other.met(&mut |read| (read == pinned).then_some(value)) != Some(false)
        };
        path.constraints.iter().all(meets)
    })
}

struct PathWalker<'a> {
    test: &'a Test,
    thread: ThreadId,
    unroll: u32,
    loops: LoopFacts,
    done: Vec<Path>,
}

#[derive(Clone)]
struct PartialPath {
    at: usize,
    path: Path,
    reads: LocalRead,
    executed: Vec<u16>,
    jumps: Vec<u32>,
    /// The state at the last visit of each label.
    heads: Vec<Head>,
    /// The redundant turns of each loop.
    repeated: Vec<RepeatedTurns>,
    comparisons: Comparisons,
    /// Reads that decide if control reaches the code before an instruction (control dependencies).
    control: Vec<(usize, Vec<LocalRead>)>,
}

/// The state of a path at a loop head.
#[derive(Clone)]
struct Head {
    at: usize,
    steps: usize,
    registers: Vec<Symbolic<LocalRead>>,
    comparisons: Comparisons,
}

/// The comparison that last assigned each condition register.
#[derive(Clone, Default)]
struct Comparisons(Vec<(RegisterId, Constraint<LocalRead>)>);

impl Comparisons {
    fn of(&self, register: RegisterId) -> Option<&Constraint<LocalRead>> {
        self.0.iter().find(|(known, _)| *known == register).map(|(_, comparison)| comparison)
    }

    fn assign(&mut self, register: RegisterId, comparison: Constraint<LocalRead>) {
        self.0.retain(|(known, _)| *known != register);
        self.0.push((register, comparison));
    }
}

impl PathWalker<'_> {
    fn walk(&mut self, start: PartialPath) -> Result<(), PredictError> {
        let thread = self.test.thread(self.thread);
        let mut open = Vec::new();
        let mut next = Some(start);
        while let Some(mut state) = next {
            while let Some(instruction) = thread.instructions.get(state.at) {
                let at = state.at;
                state.at += 1;
                if !self.execute(&mut state, at, &instruction.kind, &mut open)? {
                    break;
                }
                if open.len() + self.done.len() > MAX_PATHS {
                    return Err(PredictError::TooManyPaths { thread: thread.number, bound: MAX_PATHS });
                }
            }
            self.done.push(state.path);
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
                state.push(at, StepKind::Fence(*scope, *semantics));
            }
            InstructionKind::ControlBarrier(_) => state.push(at, StepKind::ControlBarrier),
            InstructionKind::SplitBarrier(_) => state.push(at, StepKind::SplitBarrier),
            InstructionKind::Subgroup(operation) => {
                let brought = operation.value.map(|operand| value(state, operand, ScalarType::default()));
                let result = Symbolic::Read(state.reads);
                state.assign(operation.destination, |_| result);
                state.push(at, StepKind::Subgroup(brought));
            }
            InstructionKind::System(_) | InstructionKind::ShaderCall(_) | InstructionKind::Interlock(_) => {
                state.push(at, StepKind::System);
            }
            InstructionKind::Compute(compute) => self.compute(state, compute),
            InstructionKind::Flow(flow) => return self.go_on(state, at, flow, open),
        }
        Ok(true)
    }

    /// Follows a label or jump; false if the path ends.
    fn go_on(
        &mut self,
        state: &mut PartialPath,
        at: usize,
        flow: &Flow,
        open: &mut Vec<PartialPath>,
    ) -> Result<bool, PredictError> {
        match flow {
            Flow::Label(_) => {
                state.pass(at);
                Ok(true)
            }
            Flow::Goto(target) => self.jump(state, at, *target),
            Flow::Branch { relation, left, right, target } => {
                let scalar = self.operand_type(*left).max_width(self.operand_type(*right));
                let (left, right) = (value(state, *left, scalar), value(state, *right, scalar));
                let taken = Constraint { relation: *relation, holds: true, left, right, scalar };
                self.branch(state, at, *target, taken, open)
            }
            Flow::BranchIf { condition, target } => {
                // A register that no comparison has assigned is 0.
                let Some(comparison) = state.comparisons.of(*condition).cloned() else {
                    return Ok(true);
                };
                // The code up to the branch target executes only if the branch is not taken, so it
                // is control-dependent on these reads.
                let reads = reads_of([&comparison.left, &comparison.right]);
                state.decide(&reads, self.position(*target)?);
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
        taken: Constraint<LocalRead>,
        open: &mut Vec<PartialPath>,
    ) -> Result<bool, PredictError> {
        match taken.met(&mut |_| None) {
            Some(false) => Ok(true),
            Some(true) => {
                state.path.skipped.push(at as u16);
                self.jump(state, at, target)
            }
            None => {
                // Both outcomes are paths. The taken one is stored, the other one continues in
                // place.
                let mut jumped = state.clone();
                jumped.path.skipped.push(at as u16);
                jumped.path.constraints.push(taken.clone());
                if self.jump(&mut jumped, at, target)? {
                    open.push(jumped);
                } else {
                    self.done.push(jumped.path);
                }
                state.path.constraints.push(Constraint { holds: false, ..taken });
                Ok(true)
            }
        }
    }

    fn compute(&self, state: &mut PartialPath, compute: &Compute) {
        match compute {
            Compute::Compare { destination, relation, left, right } => {
                let scalar = ScalarType::default();
                let comparison = Constraint {
                    relation: *relation,
                    holds: true,
                    left: value(state, *left, scalar),
                    right: value(state, *right, scalar),
                    scalar: UNSIGNED,
                };
                // A comparison is stored unevaluated: only `BranchIf` reads a condition register.
                state.comparisons.assign(*destination, comparison);
            }
            Compute::Move { destination, value: moved } => {
                state.path.registers[usize::from(destination.0)] =
                    value(state, *moved, ScalarType::default());
            }
            Compute::Arithmetic { destination, operation, left, right } => {
                let scalar = self.test.register_type(self.thread, *destination);
                let (left, right) = (value(state, *left, scalar), value(state, *right, scalar));
                state.path.registers[usize::from(destination.0)] =
                    Symbolic::operation(*operation, scalar, left, right);
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
            let reads = reads_of([&state.path.registers[usize::from(register.0)]]);
            state.path.decisive.extend(&reads);
            reads
        });
        for (index, lane) in access.lanes().enumerate() {
            self.execute_lane(state, at, &lane, &address, open);
            if let Some(step) = state.path.steps.last_mut() {
                step.cooperative = access.performer == Performer::Cooperative;
                if index > 0 {
                    // The instruction was executed once, so the counter is reset.
                    state.executed[at] -= 1;
                    step.occurrence -= 1;
                    step.continues = true;
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
        address: &[LocalRead],
        open: &mut Vec<PartialPath>,
    ) {
        let (test, place, scalar) = (self.test, &access.place, access.place.scalar_type(self.test));
        let memory = |access| StepAccess {
            location: place.location,
            class: place.class,
            access,
            extent: Extent::of(test, place),
        };
        let own = memory(access.strength);
        let stored =
            |state: &PartialPath, operand| narrowed(test, value(state, operand, scalar), operand, scalar);
        let seen = Symbolic::Read(state.reads);
        let to_register =
            |register, seen| Symbolic::extended(seen, scalar, test.register_type(self.thread, register));
        match access.kind {
            AccessKind::Load(destinations) => {
                let register = destinations.first();
                state.path.registers[usize::from(register.0)] = to_register(register, seen);
                state.push_with(at, StepKind::Read(own), address);
            }
            AccessKind::Store(values) => {
                let written = stored(state, values.first());
                state.push_with(at, StepKind::Write(own, written), address);
            }
            AccessKind::Await { destination, value: awaited } => {
                let awaited = value(state, awaited, scalar);
                state.push_with(at, StepKind::Read(own), address);
                // Everything after an await executes only if the await succeeds.
                state.decide(&reads_of([&seen, &awaited]), usize::MAX);
                state.path.constraints.push(Constraint {
                    relation: BranchRelation::Equal,
                    holds: true,
                    left: seen.clone(),
                    right: awaited,
                    scalar: UNSIGNED,
                });
                state.path.registers[usize::from(destination.0)] = to_register(destination, seen);
            }
            AccessKind::Rmw { destination, operation } => {
                let written = match operation {
                    RmwOperation::Exchange(operand) => stored(state, operand),
                    RmwOperation::Fetch(operation, operand) => {
                        Symbolic::operation(operation, scalar, seen.clone(), value(state, operand, scalar))
                    }
                    RmwOperation::CompareExchange { value: operand, .. } => stored(state, operand),
                };
                let mut succeeds = None;
                if let RmwOperation::CompareExchange { compare, unequal, .. } = operation {
                    // The failing case only reads, with its own semantics.
                    let strength = match access.strength {
                        Access::Atomic { scope, .. } => Access::Atomic { scope, semantics: unequal },
                        plain @ (Access::Private | Access::NonPrivate | Access::Coherent { .. }) => plain,
                    };
                    let equal = Constraint {
                        relation: BranchRelation::Equal,
                        holds: true,
                        left: seen.clone(),
                        right: value(state, compare, scalar),
                        scalar,
                    };
                    // Success and failure are separate paths, since failure has neither a write nor
                    // the same semantics.
                    let mut failed = state.clone();
                    failed.push_with(at, StepKind::Rmw(memory(strength), None), address);
                    failed.assign(destination, |register| to_register(register, seen.clone()));
                    failed.path.constraints.push(Constraint { holds: false, ..equal.clone() });
                    open.push(failed);
                    succeeds = Some(equal);
                }
                state.assign(destination, |register| to_register(register, seen));
                state.push_with(at, StepKind::Rmw(own, Some(written)), address);
                state.path.constraints.extend(succeeds);
            }
        }
    }

    /// Takes a jump; false if the loop bound ends the path.
    fn jump(&self, state: &mut PartialPath, at: usize, target: LabelId) -> Result<bool, PredictError> {
        let position = self.position(target)?;
        if position <= at {
            let is_cut = match state.redundant_turn(position, &self.loops) {
                Some(uses) if state.repeat_turn(position, &uses) => None,
                // Turns that change nothing represent the loop completely, so the path is not cut.
                Some(_) => Some(false),
                None => {
                    state.jumps[at] += 1;
                    (state.jumps[at] >= self.unroll).then_some(true)
                }
            };
            if let Some(is_cut) = is_cut {
                state.path.terminated = false;
                state.path.cut = is_cut;
                return Ok(false);
            }
        }
        state.at = position;
        Ok(true)
    }

    /// Returns the position of a label.
    fn position(&self, target: LabelId) -> Result<usize, PredictError> {
        let instructions = &self.test.thread(self.thread).instructions;
        let position = instructions.iter().position(|i| i.kind == InstructionKind::Flow(Flow::Label(target)));
        position.ok_or(PredictError::NoEntry(NoEntry { of: LabelId::OF, index: target.index() }))
    }

    fn operand_type(&self, operand: Operand) -> ScalarType {
        match operand {
            Operand::Constant(_) => ScalarType::default(),
            Operand::Register(register) => self.test.register_type(self.thread, register),
        }
    }
}

impl PartialPath {
    /// Records the state at a label.
    fn pass(&mut self, at: usize) {
        self.heads.retain(|head| head.at != at);
        self.heads.push(Head {
            at,
            steps: self.path.steps.len(),
            registers: self.path.registers.clone(),
            comparisons: self.comparisons.clone(),
        });
    }

    fn assign(
        &mut self,
        destination: Option<RegisterId>,
        value: impl FnOnce(RegisterId) -> Symbolic<LocalRead>,
    ) {
        if let Some(destination) = destination {
            self.path.registers[usize::from(destination.0)] = value(destination);
        }
    }

    /// Makes the following steps, up to the instruction at `end`, control-dependent on `reads`.
    fn decide(&mut self, reads: &[LocalRead], end: usize) {
        self.path.decisive.extend(reads);
        self.control.push((end, reads.to_vec()));
    }

    fn push(&mut self, at: usize, kind: StepKind) {
        self.push_with(at, kind, &[]);
    }

    fn push_with(&mut self, at: usize, kind: StepKind, address: &[LocalRead]) {
        self.reads += LocalRead::from(kind.reads());
        let occurrence = self.executed[at];
        self.executed[at] += 1;
        let mut control: Vec<LocalRead> =
            self.control.iter().filter(|(end, _)| at < *end).flat_map(|(_, reads)| reads.clone()).collect();
        control.sort_unstable();
        control.dedup();
        self.path.steps.push(ThreadStep {
            instruction: at as u16,
            occurrence,
            kind,
            cooperative: false,
            continues: false,
            address: address.to_vec(),
            control,
        });
    }
}

/// As signed 64-bit numbers, 32-bit values compare unsigned.
const UNSIGNED: ScalarType = ScalarType::U64;

/// Returns the reads that values depend on, without duplicates.
fn reads_of<const N: usize>(values: [&Symbolic<LocalRead>; N]) -> Vec<LocalRead> {
    let mut reads = Vec::new();
    for value in values {
        value.for_each_read(&mut |read| reads.push(read));
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

fn value(state: &PartialPath, operand: Operand, scalar: ScalarType) -> Symbolic<LocalRead> {
    match operand {
        Operand::Constant(constant) => Symbolic::Known(litmus::Value::from_constant(constant, scalar)),
        Operand::Register(register) => state.path.registers[usize::from(register.0)].clone(),
    }
}

/// Returns the stored value: the low bytes if a register may be wider than the access.
fn narrowed(
    test: &Test,
    value: Symbolic<LocalRead>,
    operand: Operand,
    scalar: ScalarType,
) -> Symbolic<LocalRead> {
    let wider = |other: ScalarType| other.bits() > scalar.bits();
    match operand {
        Operand::Register(_)
            if wider(ScalarType::default()) || test.locations.iter().any(|l| wider(l.scalar_type())) =>
        {
            value.part(0, scalar.bits() / 8)
        }
        Operand::Constant(_) | Operand::Register(_) => value,
    }
}

trait Width {
    fn max_width(self, other: Self) -> Self;
}

impl Width for ScalarType {
    /// The wider of two types.
    fn max_width(self, other: ScalarType) -> ScalarType {
        if other.bits() > self.bits() { other } else { self }
    }
}
