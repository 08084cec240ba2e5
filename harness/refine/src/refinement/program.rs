//! The thread of an invocation as a sequence of memory events, one at a time.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet, HashSet};

use litmus::{Access, AccessKind, Compute, Flow, InstructionKind, Operand, RmwOperation, Semantics};
use spirv_reader::{SourcePosition, SpirvModule};

use super::condition::{Condition, ConditionFacts, ConditionValue};
use super::event::{CellKey, Event, MemoryKey, Operation, OrderShape};
use super::expression::{Expression, LiveRegisters, Registers};
use symbolic::emit::COUNT_REGISTER;
use symbolic::{LiftedCase, NumberDomain, emit};

/// Upper bound on the instructions between two events.
const MAX_SILENT_STEPS: usize = 100_000;

/// A position in the code, with the registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThreadPosition {
    pub position: usize,
    pub registers: Registers,
}

/// The next step of a machine.
pub(super) enum ProgramStep {
    /// The next event; the machine is at the position after it.
    Event(Event),
    /// A branch depends on this condition.
    Split(Condition),
    /// The thread ends.
    End,
    /// The thread loops forever without an event.
    Hang,
    /// The path ends at the unrolling bound.
    Cut,
    /// Nothing after this position is defined.
    Undefined(String),
    /// An instruction that the comparison does not support.
    Unsupported(String),
}

/// The code of an invocation.
pub(super) struct Program<'a> {
    case: &'a LiftedCase,
    thread: usize,
    /// The positions of volatile accesses.
    volatile: &'a HashSet<SourcePosition>,
    keys: Vec<CellKey>,
    labels: BTreeMap<u16, usize>,
    live: Vec<LiveRegisters>,
    /// True if the code has a loop.
    pub has_loop: bool,
}

/// Returns the identities of the locations of a test.
pub(super) fn cell_keys(case: &LiftedCase, module: &SpirvModule) -> Vec<CellKey> {
    let code = module.functions.values().flat_map(|function| &function.code);
    let used: BTreeSet<u32> = code.flat_map(|instruction| module.operands_of(instruction)).copied().collect();
    // Compilers remove variables that no code uses.
    let workgroup: Vec<u32> = module
        .variables
        .iter()
        .filter(|(id, variable)| {
            variable.class == rspirv::spirv::StorageClass::Workgroup && used.contains(id)
        })
        .map(|(id, _)| *id)
        .collect();
    let key = |cell: &entry_point::layout::MemoryCell| {
        let decorations = module.decorations_of(cell.object.variable);
        // Workgroup variables have no binding; their place in the order of ids identifies them in
        // both modules.
        let position = workgroup.iter().position(|id| *id == cell.object.variable);
        let memory = match (decorations.binding, position) {
            (None, Some(position)) => MemoryKey::Workgroup { position },
            (binding, _) => MemoryKey::Buffer {
                set: decorations.set.unwrap_or(0),
                binding: binding.unwrap_or(u32::MAX),
                element: cell.object.instance.saturating_sub(1) as u32,
            },
        };
        CellKey { memory, offset: Expression::Known(cell.offset), bytes: cell.bytes }
    };
    case.cells.iter().map(key).collect()
}

impl<'a> Program<'a> {
    pub fn new(
        case: &'a LiftedCase,
        module: &SpirvModule,
        volatile: &'a HashSet<SourcePosition>,
        thread: usize,
    ) -> Program<'a> {
        let code = &case.test.threads[thread].instructions;
        let mut labels = BTreeMap::new();
        for (at, instruction) in code.iter().enumerate() {
            if let (_, Some(label)) = emit::labels_of(&instruction.kind) {
                labels.insert(label.0, at);
            }
        }
        let target = |kind: &InstructionKind| emit::labels_of(kind).0.and_then(|label| labels.get(&label.0));
        let loops = code
            .iter()
            .enumerate()
            .any(|(at, instruction)| target(&instruction.kind).is_some_and(|target| *target <= at));
        // Backward data flow, repeated until loops are stable.
        let mut live: Vec<LiveRegisters> = vec![BTreeSet::new(); code.len() + 1];
        loop {
            let mut changed = false;
            for (at, instruction) in code.iter().enumerate().rev() {
                let kind = &instruction.kind;
                let mut live_here = match emit::jump_of(kind) {
                    Some(_) => BTreeSet::new(),
                    None => live[at + 1].clone(),
                };
                if let Some(target) = target(kind) {
                    live_here.extend(live[*target].iter().copied());
                }
                for written in kind.destinations() {
                    live_here.remove(&written.0);
                }
                live_here.extend(kind.registers_read().map(|register| register.0));
                if live_here != live[at] {
                    live[at] = live_here;
                    changed = true;
                }
            }
            // Without a backward jump, one pass from the end is exact.
            if !changed || !loops {
                break;
            }
        }
        Program { case, thread, volatile, keys: cell_keys(case, module), labels, live, has_loop: loops }
    }

    /// Removes registers that are not read any more.
    pub fn drop_dead_registers(&self, machine: &mut ThreadPosition) {
        let live = self.live.get(machine.position);
        machine.registers.retain(|register, _| live.is_some_and(|live| live.contains(register)));
    }

    /// Returns true if the code from the position of a machine on may read a register.
    pub fn reads_later(&self, machine: &ThreadPosition, register: u16) -> bool {
        self.live.get(machine.position).is_none_or(|live| live.contains(&register))
    }

    fn jump_target(&self, label: litmus::LabelId) -> usize {
        self.labels.get(&label.0).copied().unwrap_or(usize::MAX)
    }

    /// Executes up to the next event.
    pub fn advance(&self, machine: &mut ThreadPosition, facts: &ConditionFacts) -> ProgramStep {
        let code = &self.case.test.threads[self.thread].instructions;
        for _ in 0..MAX_SILENT_STEPS {
            let Some(instruction) = code.get(machine.position) else { return ProgramStep::End };
            let at = machine.position;
            let value = |operand: Operand| match operand {
                // Constants are bit patterns of 32 bits, possibly sign-extended.
                Operand::Constant(number) => Expression::Known(number as u64),
                Operand::Register(register) => {
                    machine.registers.get(&register.0).cloned().unwrap_or(Expression::Known(0))
                }
            };
            match &instruction.kind {
                InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                    // The lifting assigns this register only where a loop reaches its bound.
                    if destination.0 == COUNT_REGISTER {
                        return ProgramStep::Cut;
                    }
                    let result = match emit::function_of(*right) {
                        Some(function) => Expression::apply_function(function, value(*left)),
                        None => Expression::apply(*operation, value(*left), value(*right)),
                    };
                    machine.registers.insert(destination.0, result);
                    machine.position += 1;
                }
                InstructionKind::Flow(Flow::Label(_)) => machine.position += 1,
                InstructionKind::Flow(Flow::Goto(label)) => {
                    let target = self.jump_target(*label);
                    // A jump to a label directly in front of it: an endless loop without events.
                    if target.saturating_add(1) == at {
                        return ProgramStep::Hang;
                    }
                    machine.position = target;
                }
                kind @ InstructionKind::Flow(Flow::Branch { .. }) if emit::position_of(kind).is_some() => {
                    machine.position += 1;
                }
                InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                    // In the litmus test, this branch is never taken; here the mark itself is the
                    // undefined behaviour.
                    if let Some(suspicion) = emit::suspicion_of(&instruction.kind) {
                        let found = self.case.suspicions.get(suspicion);
                        let what = found.map_or("undefined behaviour", |found| found.message.as_str());
                        return ProgramStep::Undefined(what.to_owned());
                    }
                    let (left, right) = (value(*left), value(*right));
                    let holds = match Condition::compare(*relation, left, right) {
                        ConditionValue::Known(holds) => holds,
                        ConditionValue::Open { condition, holds_if } => match facts.get(&condition) {
                            Some(known) => *known == holds_if,
                            None => return ProgramStep::Split(condition),
                        },
                    };
                    machine.position = if holds { self.jump_target(*target) } else { at + 1 };
                }
                kind @ (InstructionKind::Access(_)
                | InstructionKind::Fence { .. }
                | InstructionKind::ControlBarrier(_)
                | InstructionKind::Interlock(_)) => {
                    let event = self.build_event(kind, at, &value);
                    machine.position += 1;
                    return match event {
                        Some(event) => ProgramStep::Event(event),
                        None => ProgramStep::Unsupported("an access of several components".to_owned()),
                    };
                }
                other @ (InstructionKind::SplitBarrier(_)
                | InstructionKind::Subgroup(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Compute(_)
                | InstructionKind::Flow(_)) => return ProgramStep::Unsupported(other.name().to_owned()),
            }
        }
        ProgramStep::Hang
    }

    fn build_event(
        &self,
        kind: &InstructionKind,
        at: usize,
        value: &impl Fn(Operand) -> Expression,
    ) -> Option<Event> {
        let spot = *self.case.origins.get(self.thread)?.get(at)?;
        let order = |shape, scope, semantics| Event {
            operation: Operation::Order(shape),
            cell: None,
            strength: Access::Atomic { scope, semantics },
            destination: None,
            domain: None,
            is_volatile: false,
            spot,
        };
        if let InstructionKind::Fence { scope, semantics } = kind {
            return Some(order(OrderShape::Fence, *scope, *semantics));
        }
        if let InstructionKind::ControlBarrier(barrier) = kind {
            let shape = OrderShape::Barrier { scope: barrier.execution_scope };
            let semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
            return Some(order(shape, barrier.memory_scope, semantics));
        }
        if let InstructionKind::Interlock(interlock) = kind {
            let shape = OrderShape::Interlock(format!("{interlock:?}"));
            return Some(order(shape, litmus::Scope::Device, Semantics::RELAXED));
        }
        let access = kind.access().filter(|access| !access.is_vector())?;
        let location = usize::from(access.place.location.0);
        let domain = match self.case.domains.get(location)? {
            NumberDomain::Values(values) => Some(values.iter().copied().collect()),
            NumberDomain::Any => None,
        };
        let operation = match access.kind {
            AccessKind::Load(_) => Operation::Load,
            AccessKind::Store(values) => Operation::Store(value(values.first())),
            AccessKind::Rmw { operation, .. } => match operation {
                RmwOperation::Exchange(operand) => Operation::Exchange(value(operand)),
                RmwOperation::Fetch(operation, operand) => {
                    Operation::Fetch(operation, access.place.scalar_type(&self.case.test), value(operand))
                }
                RmwOperation::CompareExchange { compare, value: stored, unequal } => {
                    Operation::CompareExchange(value(compare), value(stored), unequal)
                }
            },
            AccessKind::Await { .. } => return None,
        };
        let destination = access.destinations().next().map(|register| register.0);
        let (mut cell, strength) = (self.keys.get(location)?.clone(), access.strength);
        if self.case.cells.get(location)?.has_variable_offset() {
            let code = &self.case.test.threads[self.thread].instructions;
            let (register, offset) = emit::position_of(&code.get(at.checked_sub(1)?)?.kind)?;
            let base = value(Operand::Register(register));
            cell.offset =
                Expression::apply(litmus::ArithmeticOperation::Add, base, Expression::Known(offset));
        }
        let cell = Some(cell);
        let is_volatile = self.volatile.contains(&spot.place);
        Some(Event { operation, cell, strength, destination, domain, is_volatile, spot })
    }
}
