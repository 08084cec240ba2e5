//! Atomic instructions, and what read-modify-writes may store.

use std::rc::Rc;

use litmus::ArithmeticOperation;
use rspirv::spirv::Op;

use crate::emit;
use crate::error::{Problem, unsupported};
use crate::module::{Instruction, Type};
use crate::order::{scope, semantics};
use crate::state::{Performed, State};
use crate::value::{Number, Value};
use crate::walk::{Step, Walk};

impl Walk<'_> {
    pub(crate) fn atomic(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let module = self.setting.module();
        let op = instruction.op;
        let pointer = self.pointer(state, instruction, 0)?;
        let literal = |walk: &mut Self, state: &mut State, index: usize| {
            let value = walk.operand(state, instruction, index)?;
            walk.known(state, &value, "a scope or semantics")
        };
        let at = scope(literal(self, state, 1)?, module.vulkan)?;
        let order = semantics(literal(self, state, 2)?)?;
        let compare = op == Op::AtomicCompareExchange || op == Op::AtomicCompareExchangeWeak;
        let unequal = if compare { semantics(literal(self, state, 3)?)? } else { order };
        if !matches!(module.ty(pointer.ty)?, Type::Integer { .. }) {
            return Err(unsupported(format!("Op{op:?} on what is no integer")).into());
        }
        let bits = self.spec().bits(pointer.ty)?;
        let value = match op {
            Op::AtomicLoad => Number::Known(0),
            Op::AtomicIIncrement | Op::AtomicIDecrement => Number::Known(1),
            _ => {
                let value = self.operand(state, instruction, if compare { 4 } else { 3 })?;
                match state.resolved(&value) {
                    Value::Opaque => {
                        return Err(Problem::Opaque { what: "an atomic's operand".into() }.into());
                    }
                    other => self.number(state, &other, "an atomic's operand")?,
                }
            }
        };
        let expected = match compare {
            true => {
                let value = self.operand(state, instruction, 5)?;
                self.number(state, &value, "a comparator")?
            }
            false => Number::Known(0),
        };
        let operation = match op {
            Op::AtomicIAdd | Op::AtomicIIncrement => Some((ArithmeticOperation::Add, Op::IAdd)),
            Op::AtomicISub | Op::AtomicIDecrement => Some((ArithmeticOperation::Subtract, Op::ISub)),
            Op::AtomicAnd => Some((ArithmeticOperation::And, Op::BitwiseAnd)),
            Op::AtomicOr => Some((ArithmeticOperation::Or, Op::BitwiseOr)),
            Op::AtomicXor => Some((ArithmeticOperation::Xor, Op::BitwiseXor)),
            Op::AtomicUMin | Op::AtomicSMin => Some((ArithmeticOperation::Minimum, Op::Nop)),
            Op::AtomicUMax | Op::AtomicSMax => Some((ArithmeticOperation::Maximum, Op::Nop)),
            Op::AtomicLoad | Op::AtomicStore | Op::AtomicExchange => None,
            _ if compare => None,
            _ => return Err(unsupported(format!("Op{op:?}")).into()),
        };
        let signed = matches!(op, Op::AtomicSMin | Op::AtomicSMax);
        let scalar = if signed { emit::signed_scalar_of(bits / 8) } else { emit::scalar_of(bits / 8) };
        let scalar = scalar.ok_or_else(|| unsupported(format!("atomics of {bits} bits")))?;
        let cell = self.cell(pointer, pointer.ty)?;
        let (reads, writes) = (op != Op::AtomicStore, op != Op::AtomicLoad);
        let class = self.class(cell.object);
        if class.is_some() {
            let ordered = [order, unequal].iter().any(|order| order.order != litmus::Order::Relaxed);
            self.touch(cell, reads, writes, ordered);
        }
        let computed = |old: u64, value: u64| match operation {
            Some((operation, _)) => operation.apply(litmus::Value(old), litmus::Value(value), scalar).0,
            None => value,
        };
        let Some(class) = class.filter(|_| self.is_shared(cell)) else {
            // Of this invocation alone.
            let old = self.read_private(state, cell, pointer.ty)?;
            let old = if reads { self.known(state, &old, "an atomic")? } else { 0 };
            let new = match (value, operation) {
                (Number::Known(value), _) => Value::Known(computed(old, value)),
                (Number::Register(register), None) => Value::Register(register),
                (Number::Register(register), Some(_)) => {
                    let value = self.known(state, &Value::Register(register), "an atomic")?;
                    Value::Known(computed(old, value))
                }
            };
            let expected = match expected {
                Number::Known(expected) => expected,
                Number::Register(register) => {
                    self.known(state, &Value::Register(register), "a comparator")?
                }
            };
            if writes && (!compare || old == expected) {
                let number = match &new {
                    Value::Register(register) => Number::Register(*register),
                    other => Number::Known(crate::layout::known(other).unwrap_or(0)),
                };
                if self.class(cell.object).is_some() {
                    self.note_stored(cell, &state.domain(number));
                }
                self.write_private(state, cell, new)?;
            }
            return Ok(Value::Known(old));
        };
        if self.knowledge.opaque.contains(&cell) && (writes && reads) {
            return Err(Problem::Opaque { what: "an atomic's old value".into() }.into());
        }
        let mut target = self.target(cell, class)?;
        if signed {
            target.scalar = Some(scalar);
        }
        if op == Op::AtomicLoad {
            let access = litmus::Access::Atomic { scope: at, semantics: order };
            return self.shared_read(state, cell, |register| emit::load(register, target, access));
        }
        let domain = self.domain(cell)?;
        if op == Op::AtomicStore {
            self.note_given(cell, &state.domain(value));
            let access = litmus::Access::Atomic { scope: at, semantics: order };
            self.emit(emit::store(target, value, access))?;
            (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
            return Ok(Value::Opaque);
        }
        // What memory holds at first takes no update to get to.
        let initial = self.initial(cell)?;
        self.round.found.generations.entry(cell).or_default().insert(initial, 0);
        let domain = self.before_update(state, cell, &domain);
        let register = self.register(state, domain.clone())?;
        if compare {
            let success = state
                .domain(expected)
                .values()
                .zip(domain.values())
                .is_none_or(|(wanted, held)| wanted.iter().any(|value| held.contains(value)));
            if success {
                self.note_given(cell, &state.domain(value));
            }
            self.emit(emit::compare_exchange(register, target, (expected, value), (at, order, unequal)))?;
            if self.fork_success(state, register, expected)? {
                (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
            }
            return Ok(state.resolved(&Value::Register(register)));
        }
        self.note_update(state, cell, &domain, &state.domain(value), operation.is_some(), computed);
        let order = (at, order);
        let operation = operation.map(|(operation, _)| operation);
        let kind = emit::read_modify_write(register, target, operation, value, order);
        self.emit(kind)?;
        Rc::make_mut(&mut state.performed).push(Performed { register, operation, value, scalar });
        (state.effects, state.writes) = (state.effects + 1, state.writes + 1);
        Ok(state.resolved(&Value::Register(register)))
    }
}
