//! Atomic instructions of the symbolic execution, and the values that read-modify-writes may store.

use std::rc::Rc;

use litmus::ArithmeticOperation;
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind, SpirvInstruction, SpirvType};

use crate::emit;
use crate::executor::{Executor, Step};
use crate::state::{PathState, PerformedRmw};
use crate::value::{SymbolicNumber, SymbolicValue};
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{Problem, unsupported};

impl Executor<'_> {
    pub(crate) fn execute_atomic(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        AtomicAccess { pointer, scope, semantics, kind }: AtomicAccess,
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        let op = instruction.op;
        let pointer = self.pointer_of_id(state, pointer)?;
        let scope = scope_from_number(self.constant_operand(state, scope)?, module.uses_vulkan_model)?;
        let order = semantics_from_number(self.constant_operand(state, semantics)?)?;
        let unequal = match kind {
            AtomicKind::CompareExchange { unequal, .. } => {
                semantics_from_number(self.constant_operand(state, unequal)?)?
            }
            _ => order,
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
                match state.resolve_value(&value) {
                    SymbolicValue::Opaque => {
                        return Err(Problem::Opaque { what: "an atomic's operand".into() }.into());
                    }
                    other => self.resolve_number(state, &other, "an atomic's operand")?,
                }
            }
        };
        let compare = matches!(kind, AtomicKind::CompareExchange { .. });
        let expected = match kind {
            AtomicKind::CompareExchange { comparator, .. } => {
                let value = self.value_of_id(state, comparator)?;
                self.resolve_number(state, &value, "a comparator")?
            }
            _ => SymbolicNumber::Known(0),
        };
        let (operation, signed) = match kind {
            AtomicKind::Update { function, .. } => {
                let operation = match function {
                    AtomicFunction::Add => ArithmeticOperation::Add,
                    AtomicFunction::Subtract => ArithmeticOperation::Subtract,
                    AtomicFunction::And => ArithmeticOperation::And,
                    AtomicFunction::Or => ArithmeticOperation::Or,
                    AtomicFunction::Xor => ArithmeticOperation::Xor,
                    AtomicFunction::Min | AtomicFunction::SignedMin => ArithmeticOperation::Minimum,
                    AtomicFunction::Max | AtomicFunction::SignedMax => ArithmeticOperation::Maximum,
                    AtomicFunction::FloatAdd | AtomicFunction::FloatMin | AtomicFunction::FloatMax => {
                        return Err(unsupported(format!("Op{op:?}")).into());
                    }
                };
                let signed = matches!(function, AtomicFunction::SignedMin | AtomicFunction::SignedMax);
                (Some(operation), signed)
            }
            _ => (None, false),
        };
        let scalar = if signed { emit::signed_scalar_of(bits / 8) } else { emit::scalar_of(bits / 8) };
        let scalar = scalar.ok_or_else(|| unsupported(format!("atomics of {bits} bits")))?;
        let cell = self.cell_at(pointer, pointer.ty)?;
        let (reads, writes) = (kind.reads(), kind.writes());
        let class = self.storage_class(cell.object);
        if class.is_some() {
            let ordered = [order, unequal].iter().any(|order| order.order != litmus::Order::Relaxed);
            self.note_access(cell, reads, writes, ordered);
        }
        let computed = |old: u64, value: u64| match operation {
            Some(operation) => operation.apply(litmus::Value(old), litmus::Value(value), scalar).0,
            None => value,
        };
        let Some(class) = class.filter(|_| self.is_shared(cell)) else {
            // The cell is private.
            let old = self.read_private(state, cell, pointer.ty)?;
            let old = if reads { self.fork_to_known(state, &old, "an atomic")? } else { 0 };
            let new = match (value, operation) {
                (SymbolicNumber::Known(value), _) => SymbolicValue::Known(computed(old, value)),
                (SymbolicNumber::Register(register), None) => SymbolicValue::Register(register),
                (SymbolicNumber::Register(register), Some(_)) => {
                    let value = self.fork_to_known(state, &SymbolicValue::Register(register), "an atomic")?;
                    SymbolicValue::Known(computed(old, value))
                }
            };
            let expected = match expected {
                SymbolicNumber::Known(expected) => expected,
                SymbolicNumber::Register(register) => {
                    self.fork_to_known(state, &SymbolicValue::Register(register), "a comparator")?
                }
            };
            if writes && (!compare || old == expected) {
                let number = match &new {
                    SymbolicValue::Register(register) => SymbolicNumber::Register(*register),
                    other => SymbolicNumber::Known(crate::constants::known_number(other).unwrap_or(0)),
                };
                if self.storage_class(cell.object).is_some() {
                    self.note_stored(cell, &state.domain_of(number));
                }
                self.write_private(state, cell, new)?;
            }
            return Ok(SymbolicValue::Known(old));
        };
        if self.facts.opaque.contains(&cell) && (writes && reads) {
            return Err(Problem::Opaque { what: "an atomic's old value".into() }.into());
        }
        let mut target = self.access_target(cell, class)?;
        if signed {
            target.scalar = Some(scalar);
        }
        if kind == AtomicKind::Load {
            let access = litmus::Access::Atomic { scope, semantics: order };
            self.emit_position(&pointer)?;
            return self.shared_read(state, cell, |register| emit::load(register, target, access));
        }
        let domain = self.cell_domain(cell)?;
        if !reads {
            self.note_plain_store(cell, &state.domain_of(value));
            let access = litmus::Access::Atomic { scope, semantics: order };
            self.emit_position(&pointer)?;
            self.emit_instruction(emit::store(target, value, access))?;
            (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
            return Ok(SymbolicValue::Opaque);
        }
        // The initial value and those of others need no update to be reached.
        let initial = self.initial_number(cell)?;
        let others = self.context.open_memory(cell).and_then(|open| open.values.as_ref());
        let generations = self.round.facts.generations.entry(cell).or_default();
        generations.extend(others.into_iter().flatten().copied().chain([initial]).map(|value| (value, 0)));
        let domain = self.values_before_update(state, cell, &domain);
        let register = self.new_register(state, domain.clone())?;
        if compare {
            let success = state
                .domain_of(expected)
                .finite_values()
                .zip(domain.finite_values())
                .is_none_or(|(wanted, held)| wanted.iter().any(|value| held.contains(*value)));
            if success {
                self.note_plain_store(cell, &state.domain_of(value));
            }
            self.emit_position(&pointer)?;
            self.emit_instruction(emit::compare_exchange(
                register,
                target,
                (expected, value),
                (scope, order, unequal),
            ))?;
            if self.fork_success(state, register, expected)? {
                (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
            }
            return Ok(state.resolve_value(&SymbolicValue::Register(register)));
        }
        self.note_update(state, cell, &domain, &state.domain_of(value), operation.is_some(), computed);
        let order = (scope, order);
        let kind = emit::read_modify_write(register, target, operation, value, order);
        self.emit_position(&pointer)?;
        self.emit_instruction(kind)?;
        Rc::make_mut(&mut state.performed_rmws).push(PerformedRmw { register, operation, value, scalar });
        (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
        Ok(state.resolve_value(&SymbolicValue::Register(register)))
    }
}
