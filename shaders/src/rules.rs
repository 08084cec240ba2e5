//! The rules that a test breaks if it has no kernel: the complete list, and the checks that need no kernel.

#![deny(clippy::wildcard_enum_match_arm)]

mod rule;

use litmus::{
    Access, AccessKind, ArithmeticOperation, Compute, Dialect, Flow, Instruction, InstructionKind,
    LocationId, MemoryAccess, MemoryPlace, Observable, Operand, Performer, RegisterId, RmwOperation,
    ScalarType, Scope, Semantics, Span, SplitHalf, StorageClass, Test, Thread, ThreadPlace,
};

pub use self::rule::{Rule, SemanticsRule, WorkgroupClause};
use crate::kernel::CompileError;
use crate::queues::queues;
use crate::semantics::{self, SemanticsInstruction};
use crate::variant::CarrierStage;

impl Rule {
    /// Refuses a test that breaks the rule.
    pub(crate) fn when(self, is_broken: bool) -> Result<(), Rule> {
        if is_broken { Err(self) } else { Ok(()) }
    }
}

impl From<Rule> for CompileError {
    fn from(rule: Rule) -> CompileError {
        CompileError::NotPlaceable { rule: rule.to_string() }
    }
}

/// Checks the rules that do not depend on the device. Rules on control barriers and lanes are checked when
/// the code is cut into segments and lanes are assigned.
///
/// # Errors
/// The first rule that the test breaks.
pub fn check(test: &Test) -> Result<(), Rule> {
    check_except_loops(test)?;
    test.threads.iter().try_for_each(check_loops)
}

/// Checks a test whose threads may have several kernels: one for each queue family.
pub(crate) fn check_program(test: &Test) -> Result<(), Rule> {
    check_except_queues(test)?;
    test.threads.iter().try_for_each(check_loops)
}

/// Checks as [`check`], for kernels whose loops may do more than wait.
pub(crate) fn check_except_loops(test: &Test) -> Result<(), Rule> {
    check_except_queues(test)?;
    if queues(test).len() > 1 { Err(Rule::SeveralQueues) } else { Ok(()) }
}

/// Checks that a stage can run the test: graphics stages have no workgroups, and no assignment of threads by
/// subgroups.
///
/// # Errors
/// The rule that the test breaks.
pub(crate) fn check_stage(test: &Test, stage: CarrierStage) -> Result<(), Rule> {
    Rule::SubgroupOperation.when(test.has_tangles() && stage != CarrierStage::Compute)?;
    let mut instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions.try_for_each(|instruction| check_in_stage(&instruction.kind, stage))
}

/// Checks that a stage can run an instruction.
fn check_in_stage(kind: &InstructionKind, stage: CarrierStage) -> Result<(), Rule> {
    Rule::InterlockStage.when(matches!(kind, InstructionKind::Interlock(_)) && !stage.is_fragment())?;
    if !stage.has_workgroups() {
        return check_without_workgroups(kind);
    }
    if stage == CarrierStage::Compute {
        return Ok(());
    }
    Rule::SplitBarrierStage.when(matches!(kind, InstructionKind::SplitBarrier(_)))?;
    check_without_subgroups(kind)
}

/// Checks that a stage without workgroups can run an instruction.
fn check_without_workgroups(kind: &InstructionKind) -> Result<(), Rule> {
    Rule::NoWorkgroups(WorkgroupClause::ExecutionScope)
        .when(kind.execution_scope() == Some(Scope::Workgroup))?;
    Rule::NoWorkgroups(WorkgroupClause::Memory)
        .when(kind.access().is_some_and(|access| access.place.class == StorageClass::Workgroup))?;
    Rule::NoWorkgroups(WorkgroupClause::MemoryScope).when(kind.memory_scope() == Some(Scope::Workgroup))?;
    check_without_subgroups(kind)
}

/// Checks that a stage without assignment by subgroups can run an instruction.
fn check_without_subgroups(kind: &InstructionKind) -> Result<(), Rule> {
    Rule::StageSubgroups
        .when([kind.execution_scope(), kind.memory_scope()].contains(&Some(Scope::Subgroup)))?;
    Ok(())
}

/// Returns the position of the first instruction that causes an error by itself. `None` if the error has
/// another cause, or the test has no text.
pub fn find_offending_span(test: &Test, stage: CarrierStage, error: &CompileError) -> Option<Span> {
    let CompileError::NotPlaceable { rule } = error else { return None };
    let test = crate::stage::effective_test(test, stage);
    let mut instructions =
        test.threads.iter().flat_map(|thread| thread.instructions.iter().map(move |one| (thread, one)));
    let (_, instruction) = instructions.find(|(thread, instruction)| {
        let in_stage = || check_in_stage(&instruction.kind, stage);
        let refused = check_instruction(thread, instruction).and_then(|()| in_stage());
        refused.is_err_and(|own| own.to_string() == *rule)
    })?;
    Some(instruction.span).filter(|span| span.line > 0)
}

fn check_except_queues(test: &Test) -> Result<(), Rule> {
    Rule::Hsa.when(test.dialect == Dialect::Hsa)?;
    check_threads(test)?;
    Rule::ReconvergenceInBlock.when(test.reconverges_in_blocks())?;
    check_locations(test)?;
    for thread in &test.threads {
        for instruction in &thread.instructions {
            check_instruction(thread, instruction)?;
        }
    }
    Ok(())
}

fn check_threads(test: &Test) -> Result<(), Rule> {
    Rule::HostThread.when(test.threads.iter().any(|thread| thread.place == ThreadPlace::Host))?;
    Rule::NoThreads.when(test.threads.is_empty())?;
    Rule::SeparateDispatches.when(!test.system_sync.is_empty())?;
    Ok(())
}

/// Checks storage class, type and properties of every location, by declaration and by use.
fn check_locations(test: &Test) -> Result<(), Rule> {
    let mut class_of_storage: Vec<Option<StorageClass>> = vec![None; test.locations.len()];
    let mut classify = |location: LocationId, class: StorageClass| {
        let storage = test.storage_of(location);
        let known = class_of_storage.get_mut(usize::from(storage.0)).map(|slot| *slot.get_or_insert(class));
        if known.is_some_and(|known| known != class) { Err(Rule::TwoClasses) } else { Ok(()) }
    };
    for (index, location) in test.locations.iter().enumerate() {
        if let Some(reference) = location.reference {
            classify(LocationId(index as u16), reference.storage_class())?;
        }
    }
    let mut workgroup_of_storage: Vec<Option<u32>> = vec![None; test.locations.len()];
    for thread in &test.threads {
        let ThreadPlace::Device(placement) = thread.place else { continue };
        for access in thread.instructions.iter().filter_map(|instruction| instruction.kind.access()) {
            let MemoryPlace { location, class, .. } = access.place;
            classify(location, class)?;
            if class == StorageClass::Workgroup
                && let Some(slot) = workgroup_of_storage.get_mut(usize::from(test.storage_of(location).0))
                && *slot.get_or_insert(placement.workgroup) != placement.workgroup
            {
                return Err(Rule::WorkgroupMemoryAcrossWorkgroups);
            }
        }
    }
    Rule::OutputInCompute.when(class_of_storage.contains(&Some(StorageClass::Output)))?;
    check_floats(test)
}

/// Checks that final values of workgroup vectors are observed under names with the same type.
pub(crate) fn check_workgroup_vectors(test: &Test) -> Result<(), Rule> {
    let in_workgroup = |storage: LocationId| {
        let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
        instructions.filter_map(|instruction| instruction.kind.access()).any(|access| {
            access.place.class == StorageClass::Workgroup && test.storage_of(access.place.location) == storage
        })
    };
    for observable in test.observables() {
        let Observable::Location(location, _) = observable else { continue };
        let storage = test.storage_of(location);
        let (own, home) = (test.location(location), test.location(storage));
        Rule::VectorAlias
            .when(home.is_vector() && own.scalar_type() != home.scalar_type() && in_workgroup(storage))?;
    }
    Ok(())
}

/// Checks that floating-point locations represent all their values exactly.
fn check_floats(test: &Test) -> Result<(), Rule> {
    let is_float = |scalar: ScalarType| matches!(scalar, ScalarType::F32 | ScalarType::F64);
    let fits = |value: i64| (0..=1 << 24).contains(&value);
    let locations = (0..test.locations.len()).map(|index| LocationId(index as u16));
    for location in locations {
        let scalar = test.location(location).scalar_type();
        let number = |component| test.initial_value(location, component).to_signed(scalar);
        Rule::FloatValue
            .when(is_float(scalar) && !(0..test.location(location).components).map(number).all(fits))?;
    }
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    for instruction in instructions {
        let Some(access) = instruction.kind.access() else { continue };
        // A comparator is never stored.
        let is_stored = |operand: &Operand| match access.kind {
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { .. }, .. } => false,
            AccessKind::Load(_)
            | AccessKind::Store(_)
            | AccessKind::Rmw { .. }
            | AccessKind::Await { .. } => {
                matches!(operand, Operand::Constant(constant) if !fits(*constant))
            }
        };
        Rule::FloatValue.when(
            is_float(access.place.scalar_type(test)) && instruction.kind.operands().iter().any(is_stored),
        )?;
    }
    Ok(())
}

/// Checks that every loop of a thread only waits, so that its last iteration represents all of them.
///
/// An iteration may load, compare-exchange (if only failure repeats the loop), compute and jump. Removing the
/// reads of earlier iterations removes order and adds none, so an outcome that the model allows for the last
/// iteration alone is allowed for all iterations.
fn check_loops(thread: &Thread) -> Result<(), Rule> {
    let kind = |at: usize| thread.instructions.get(at).map(|instruction| &instruction.kind);
    for region in crate::flow::find_loops(thread) {
        // Registers that this iteration has certainly assigned; none after the first branch.
        let mut assigned: Vec<RegisterId> = Vec::new();
        let mut is_unconditional = true;
        let in_loop: Vec<RegisterId> =
            region.clone().filter_map(kind).flat_map(InstructionKind::destinations).collect();
        for at in region.clone() {
            let Some(kind) = kind(at) else { continue };
            let is_invariant = |operand: &Operand| match operand {
                Operand::Constant(_) => true,
                Operand::Register(register) => !in_loop.contains(register) || assigned.contains(register),
            };
            let has_no_effect = match kind {
                InstructionKind::Access(access) => match access.kind {
                    AccessKind::Load(_) => true,
                    AccessKind::Rmw {
                        destination: Some(destination),
                        operation: RmwOperation::CompareExchange { compare, value, .. },
                    } => {
                        is_invariant(&compare)
                            && is_invariant(&value)
                            && repeats_only_on_failure(thread, &region, at, destination, compare)
                    }
                    AccessKind::Store(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => false,
                },
                InstructionKind::Fence { .. } => true,
                InstructionKind::Compute(Compute::Arithmetic { left, right, .. }) => {
                    is_invariant(left) && is_invariant(right)
                }
                InstructionKind::Flow(Flow::Branch { left, right, .. }) => {
                    is_invariant(left) && is_invariant(right)
                }
                InstructionKind::Flow(Flow::Label(_)) => true,
                // An unconditional backward jump would never end.
                InstructionKind::Flow(Flow::Goto(target)) => {
                    thread.label_index(*target).is_some_and(|to| to > at)
                }
                InstructionKind::ControlBarrier(_)
                | InstructionKind::SplitBarrier(_)
                | InstructionKind::Subgroup(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
                | InstructionKind::Flow(Flow::BranchIf { .. }) => false,
            };
            Rule::LoopWithEffects.when(!has_no_effect)?;
            if matches!(kind, InstructionKind::Flow(Flow::Branch { .. } | Flow::Goto(_))) {
                is_unconditional = false;
            }
            for register in kind.destinations() {
                Rule::LoopWithEffects.when(!is_unconditional)?;
                assigned.push(register);
            }
        }
    }
    Ok(())
}

/// Returns true if a successful compare-exchange leaves the loop: the next instruction jumps backward if the
/// old value differs from the comparator, and no later one does.
fn repeats_only_on_failure(
    thread: &Thread,
    region: &std::ops::Range<usize>,
    at: usize,
    destination: RegisterId,
    compare: Operand,
) -> bool {
    let next = thread.instructions.get(at + 1).map(|instruction| &instruction.kind);
    let repeats_on_failure = matches!(next,
        Some(InstructionKind::Flow(Flow::Branch { relation: litmus::Comparison::NotEqual, left, right, target }))
            if *left == Operand::Register(destination) && *right == compare
                && thread.label_index(*target).is_some_and(|to| to <= at));
    repeats_on_failure && region.end == at + 2
}

fn check_scope(scope: Scope) -> Result<(), Rule> {
    match scope {
        Scope::CrossDevice => Err(Rule::CrossDeviceScope),
        Scope::ShaderCall => Err(Rule::ShaderCall),
        Scope::FragmentInterlock => Err(Rule::FragmentInterlock),
        Scope::Invocation | Scope::Subgroup | Scope::Workgroup | Scope::QueueFamily | Scope::Device => Ok(()),
    }
}

fn check_ordered(operation: SemanticsInstruction, scope: Scope, semantics: Semantics) -> Result<(), Rule> {
    check_scope(scope)?;
    Ok(semantics::check(operation, scope, semantics)?)
}

fn check_instruction(thread: &Thread, instruction: &Instruction) -> Result<(), Rule> {
    match &instruction.kind {
        InstructionKind::Access(access) => check_access(access),
        InstructionKind::Fence { scope, semantics } => {
            check_ordered(SemanticsInstruction::MemoryBarrier, *scope, *semantics)
        }
        InstructionKind::ControlBarrier(barrier) => {
            Rule::QuorumBarrier.when(barrier.quorum.is_some())?;
            Rule::NamedBarrier.when(barrier.resource.is_some())?;
            Rule::ExecutionScope
                .when(!matches!(barrier.execution_scope, Scope::Workgroup | Scope::Subgroup))?;
            check_ordered(
                SemanticsInstruction::ControlBarrier,
                barrier.memory_scope,
                barrier.semantics.unwrap_or(Semantics::RELAXED),
            )
        }
        InstructionKind::SplitBarrier(barrier) => {
            Rule::ExecutionScope
                .when(!matches!(barrier.execution_scope, Scope::Workgroup | Scope::Subgroup))?;
            let operation = match barrier.half {
                SplitHalf::Arrive => SemanticsInstruction::Arrival,
                SplitHalf::Wait => SemanticsInstruction::Wait,
            };
            check_ordered(operation, barrier.memory_scope, barrier.semantics.unwrap_or(Semantics::RELAXED))
        }
        InstructionKind::System(operation) if operation.is_host_operation() => Err(Rule::HostThread),
        InstructionKind::System(_) => Err(Rule::SeparateDispatches),
        InstructionKind::ShaderCall(_) => Err(Rule::ShaderCall),
        InstructionKind::Compute(Compute::Arithmetic { operation: ArithmeticOperation::Divide, .. }) => {
            Err(Rule::Division)
        }
        InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
        | InstructionKind::Flow(Flow::BranchIf { .. }) => Err(Rule::Hsa),
        InstructionKind::Subgroup(_)
        | InstructionKind::Interlock(_)
        | InstructionKind::Compute(Compute::Arithmetic { .. })
        | InstructionKind::Flow(Flow::Label(_)) => Ok(()),
        InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) => {
            // A parsed test has a position for every label.
            thread.label_index(*target).map_or(Err(Rule::LoopWithEffects), |_| Ok(()))
        }
    }
}

fn check_access(access: &MemoryAccess) -> Result<(), Rule> {
    Rule::CooperativeMatrix.when(access.performer == Performer::Cooperative)?;
    Rule::Hsa.when(access.place.address.is_some())?;
    let (operation, is_rmw) = match access.kind {
        AccessKind::Load(_) => (SemanticsInstruction::Load, false),
        AccessKind::Store(_) => (SemanticsInstruction::Store, false),
        AccessKind::Rmw { destination: Some(_), .. } => (SemanticsInstruction::Rmw, true),
        AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => return Err(Rule::Hsa),
    };
    match access.strength {
        Access::Private | Access::NonPrivate | Access::Coherent { .. } if is_rmw => {
            return Err(Rule::PlainReadModifyWrite);
        }
        Access::Private | Access::NonPrivate => {}
        Access::Coherent { scope } => check_scope(scope)?,
        Access::Atomic { .. } if access.is_vector() => return Err(Rule::AtomicVector),
        Access::Atomic { scope, semantics } => check_ordered(operation, scope, semantics)?,
    }
    match (access.kind, access.strength) {
        (AccessKind::Rmw { operation: RmwOperation::Fetch(ArithmeticOperation::Multiply, _), .. }, _) => {
            Err(Rule::AtomicMultiply)
        }
        (AccessKind::Rmw { operation: RmwOperation::Fetch(ArithmeticOperation::Divide, _), .. }, _) => {
            Err(Rule::AtomicDivide)
        }
        (
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. },
            Access::Atomic { scope, semantics },
        ) => Ok(semantics::check_unequal(scope, semantics, unequal)?),
        _ => Ok(()),
    }
}
