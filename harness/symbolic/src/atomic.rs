//! Atomic instructions of the symbolic execution, and the values that read-modify-writes may store.

use std::rc::Rc;

use litmus::{ArithmeticOperation, ScalarType, Scope, Semantics};
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind, SpirvInstruction, SpirvType};

use crate::emit::{self, AccessTarget};
use crate::executor::{Executor, Step};
use crate::state::{PathState, PerformedRmw};
use crate::value::{NumberDomain, SymbolicNumber, SymbolicPointer, SymbolicValue};
use entry_point::layout::MemoryCell;
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{Problem, unsupported};

/// An atomic instruction with its operands.
struct Atomic {
    kind: AtomicKind,
    pointer: SymbolicPointer,
    scope: Scope,
    order: Semantics,
    /// The semantics if the comparison fails.
    unequal: Semantics,
    value: SymbolicNumber,
    comparator: SymbolicNumber,
    /// The operation of an update.
    operation: Option<ArithmeticOperation>,
    scalar: ScalarType,
    is_signed: bool,
}

impl Atomic {
    /// Returns the value that an update stores, or a successful exchange or store.
    fn stored_value(&self, old: u64, value: u64) -> u64 {
        match self.operation {
            Some(operation) => operation.apply(litmus::Value(old), litmus::Value(value), self.scalar).0,
            None => value,
        }
    }
}

/// Returns the operation of an update and whether it compares signed numbers; `None` for floats.
fn integer_operation(function: AtomicFunction) -> Option<(ArithmeticOperation, bool)> {
    Some(match function {
        AtomicFunction::Add => (ArithmeticOperation::Add, false),
        AtomicFunction::Subtract => (ArithmeticOperation::Subtract, false),
        AtomicFunction::And => (ArithmeticOperation::And, false),
        AtomicFunction::Or => (ArithmeticOperation::Or, false),
        AtomicFunction::Xor => (ArithmeticOperation::Xor, false),
        AtomicFunction::Min => (ArithmeticOperation::Minimum, false),
        AtomicFunction::Max => (ArithmeticOperation::Maximum, false),
        AtomicFunction::SignedMin => (ArithmeticOperation::Minimum, true),
        AtomicFunction::SignedMax => (ArithmeticOperation::Maximum, true),
        AtomicFunction::FloatAdd | AtomicFunction::FloatMin | AtomicFunction::FloatMax => return None,
    })
}

impl Executor<'_> {
    pub(crate) fn execute_atomic(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        access: AtomicAccess,
    ) -> Step<SymbolicValue> {
        let atomic = self.atomic_operands(state, instruction, access)?;
        let (kind, pointer) = (atomic.kind, atomic.pointer);
        let cell = self.cell_at(pointer, pointer.ty)?;
        let (reads, writes) = (kind.reads(), kind.writes());
        let class = self.storage_class(cell.object);
        if class.is_some() {
            let ordered =
                [atomic.order, atomic.unequal].iter().any(|order| order.order != litmus::Order::Relaxed);
            self.note_access(cell, reads, writes, ordered);
        }
        let Some(class) = class.filter(|_| self.is_shared(cell)) else {
            return self.execute_private_atomic(state, cell, &atomic);
        };
        if self.facts.opaque.contains(&cell) && writes && reads {
            return Err(Problem::Opaque { what: "an atomic's old value".into() }.into());
        }
        let target = self.access_target(cell, class)?;
        let target = AccessTarget { scalar: atomic.is_signed.then_some(atomic.scalar), ..target };
        let access = litmus::Access::Atomic { scope: atomic.scope, semantics: atomic.order };
        if kind == AtomicKind::Load {
            self.emit_position(&pointer)?;
            return self.shared_read(state, cell, |register| emit::load(register, target, access));
        }
        let domain = self.cell_domain(cell)?;
        if reads {
            return self.execute_shared_rmw(state, cell, target, &domain, &atomic);
        }
        self.note_plain_store(cell, &state.domain_of(atomic.value));
        self.emit_position(&pointer)?;
        self.emit_instruction(emit::store(target, atomic.value, access))?;
        (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
        Ok(SymbolicValue::Opaque)
    }

    fn atomic_operands(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        AtomicAccess { pointer, scope, semantics, kind }: AtomicAccess,
    ) -> Step<Atomic> {
        let (module, op) = (self.context.module(), instruction.op);
        let pointer = self.pointer_of_id(state, pointer)?;
        let scope = scope_from_number(self.constant_operand(state, scope)?, module.uses_vulkan_model)?;
        let order = semantics_from_number(self.constant_operand(state, semantics)?)?;
        let (unequal, comparator) = match kind {
            AtomicKind::CompareExchange { unequal, comparator, .. } => {
                (semantics_from_number(self.constant_operand(state, unequal)?)?, Some(comparator))
            }
            _ => (order, None),
        };
        if !matches!(module.type_of_id(pointer.ty)?, SpirvType::Integer { .. }) {
            return Err(unsupported(format!("Op{op:?} on a value that is not an integer")).into());
        }
        let bits = self.specialized().scalar_bits(pointer.ty)?;
        let value = match (kind, kind.value()) {
            (AtomicKind::Load, _) => SymbolicNumber::Known(0),
            (_, None) => SymbolicNumber::Known(1),
            (_, Some(value)) => {
                let value = self.value_of_id(state, value)?;
                if state.resolve_value(&value) == SymbolicValue::Opaque {
                    return Err(Problem::Opaque { what: "an atomic's operand".into() }.into());
                }
                self.resolve_number(state, &value, "an atomic's operand")?
            }
        };
        let comparator = match comparator {
            Some(comparator) => {
                let value = self.value_of_id(state, comparator)?;
                self.resolve_number(state, &value, "a comparator")?
            }
            None => SymbolicNumber::Known(0),
        };
        let (operation, is_signed) = match kind {
            AtomicKind::Update { function, .. } => {
                let operation = integer_operation(function);
                let (operation, signed) = operation.ok_or_else(|| unsupported(format!("Op{op:?}")))?;
                (Some(operation), signed)
            }
            _ => (None, false),
        };
        let scalar = if is_signed { emit::signed_scalar_of(bits / 8) } else { emit::scalar_of(bits / 8) };
        let scalar = scalar.ok_or_else(|| unsupported(format!("atomics of {bits} bits")))?;
        Ok(Atomic { kind, pointer, scope, order, unequal, value, comparator, operation, scalar, is_signed })
    }

    /// Executes an atomic of a cell that no other invocation accesses.
    fn execute_private_atomic(
        &mut self,
        state: &mut PathState,
        cell: MemoryCell,
        atomic: &Atomic,
    ) -> Step<SymbolicValue> {
        let old = self.read_private(state, cell, atomic.pointer.ty)?;
        let old = if atomic.kind.reads() { self.fork_to_known(state, &old, "an atomic")? } else { 0 };
        let value = match atomic.operation {
            Some(_) => {
                SymbolicNumber::Known(self.fork_to_known(state, &atomic.value.to_value(), "an atomic")?)
            }
            None => atomic.value,
        };
        let new = match value {
            SymbolicNumber::Known(value) => SymbolicNumber::Known(atomic.stored_value(old, value)),
            SymbolicNumber::Register(register) => SymbolicNumber::Register(register),
        };
        let expected = self.fork_to_known(state, &atomic.comparator.to_value(), "a comparator")?;
        let fails = matches!(atomic.kind, AtomicKind::CompareExchange { .. }) && old != expected;
        if atomic.kind.writes() && !fails {
            if self.storage_class(cell.object).is_some() {
                self.note_stored(cell, &state.domain_of(new));
            }
            self.write_private(state, cell, new.to_value())?;
        }
        Ok(SymbolicValue::Known(old))
    }

    /// Emits a read-modify-write of a shared cell. Returns the value that it read.
    fn execute_shared_rmw(
        &mut self,
        state: &mut PathState,
        cell: MemoryCell,
        target: AccessTarget,
        domain: &NumberDomain,
        atomic: &Atomic,
    ) -> Step<SymbolicValue> {
        // The initial value and those of others need no update to be reached.
        let initial = self.initial_number(cell)?;
        let others = self.context.open_memory(cell).and_then(|open| open.values.as_ref());
        let generations = self.round.facts.generations.entry(cell).or_default();
        generations.extend(others.into_iter().flatten().copied().chain([initial]).map(|value| (value, 0)));
        let domain = self.values_before_update(state, cell, domain);
        let register = self.new_register(state, domain.clone())?;
        let Atomic { scope, order, unequal, value, comparator, operation, scalar, .. } = *atomic;
        let writes = if matches!(atomic.kind, AtomicKind::CompareExchange { .. }) {
            let may_succeed = state
                .domain_of(comparator)
                .finite_values()
                .zip(domain.finite_values())
                .is_none_or(|(wanted, held)| wanted.iter().any(|value| held.contains(*value)));
            if may_succeed {
                self.note_plain_store(cell, &state.domain_of(value));
            }
            self.emit_position(&atomic.pointer)?;
            let kind = emit::compare_exchange(register, target, comparator, value, scope, order, unequal);
            self.emit_instruction(kind)?;
            self.fork_success(state, register, comparator)?
        } else {
            let computed = |old: u64, value: u64| atomic.stored_value(old, value);
            self.note_update(state, cell, &domain, &state.domain_of(value), operation.is_some(), computed);
            self.emit_position(&atomic.pointer)?;
            let kind = emit::read_modify_write(register, target, operation, value, scope, order);
            self.emit_instruction(kind)?;
            let performed = PerformedRmw { register, operation, value, scalar };
            Rc::make_mut(&mut state.performed_rmws).push(performed);
            true
        };
        state.effects += u32::from(writes);
        state.writes += u32::from(writes);
        Ok(state.resolve_value(&SymbolicValue::Register(register)))
    }
}
