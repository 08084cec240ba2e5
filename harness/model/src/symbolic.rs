//! Symbolic values: expressions over the results of reads.

use litmus::{ArithmeticOperation, Comparison, ScalarType, Value};

/// Index of a read among the reads of one thread's path, in program order.
pub(crate) type ReadIndex = u16;

/// A value as an expression over reads. `R` names a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SymbolicValue<R> {
    /// A known value.
    Known(Value),
    /// The result of a read.
    Read(R),
    /// An operation on two values of a type.
    Operation(ArithmeticOperation, ScalarType, Box<(SymbolicValue<R>, SymbolicValue<R>)>),
    /// Some bytes of a value: the number skipped, and the number taken.
    Part(u32, u32, Box<SymbolicValue<R>>),
    /// A value concatenated from parts, each with its byte offset.
    Join(Vec<(u32, SymbolicValue<R>)>),
}

impl<R: Copy> SymbolicValue<R> {
    /// Builds an operation, folded if both operands are known.
    pub(crate) fn new_operation(
        operation: ArithmeticOperation,
        ty: ScalarType,
        left: SymbolicValue<R>,
        right: SymbolicValue<R>,
    ) -> SymbolicValue<R> {
        match (&left, &right) {
            (SymbolicValue::Known(l), SymbolicValue::Known(r)) => {
                SymbolicValue::Known(operation.apply(*l, *r, ty))
            }
            _ => SymbolicValue::Operation(operation, ty, Box::new((left, right))),
        }
    }

    /// Returns a value of type `from` as a register of type `to` holds it; see [`Value::extend`].
    pub(crate) fn extend(value: SymbolicValue<R>, from: ScalarType, to: ScalarType) -> SymbolicValue<R> {
        if !from.is_signed() || from.bits() >= to.bits() {
            return value;
        }
        // The identity (v ⊕ s) − s with the sign bit s.
        let sign = SymbolicValue::Known(Value(1 << (from.bits() - 1)));
        let flipped = SymbolicValue::new_operation(ArithmeticOperation::Xor, to, value, sign.clone());
        SymbolicValue::new_operation(ArithmeticOperation::Subtract, to, flipped, sign)
    }

    /// Returns `bytes` bytes of a value, starting at byte `before`.
    pub(crate) fn extract_bytes(self, before: u32, bytes: u32) -> SymbolicValue<R> {
        match self {
            SymbolicValue::Known(value) => SymbolicValue::Known(bytes_of(value, before, bytes)),
            other => SymbolicValue::Part(before, bytes, Box::new(other)),
        }
    }

    /// Returns the value if it depends on no read.
    pub(crate) fn known_value(&self) -> Option<Value> {
        match self {
            SymbolicValue::Known(value) => Some(*value),
            _ => None,
        }
    }

    /// Evaluates the expression, with `read` for the value of each read; `None` if one is unknown.
    pub(crate) fn evaluate(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<Value> {
        match self {
            SymbolicValue::Known(value) => Some(*value),
            SymbolicValue::Read(r) => read(*r),
            SymbolicValue::Operation(operation, ty, operands) => {
                let left = operands.0.evaluate(read)?;
                let right = operands.1.evaluate(read)?;
                Some(operation.apply(left, right, *ty))
            }
            SymbolicValue::Part(before, bytes, whole) => {
                Some(bytes_of(whole.evaluate(read)?, *before, *bytes))
            }
            SymbolicValue::Join(parts) => {
                let mut value = 0;
                for (before, part) in parts {
                    value |= part.evaluate(read)?.0 << (8 * before);
                }
                Some(Value(value))
            }
        }
    }

    /// Visits the reads that the expression depends on.
    pub(crate) fn for_each_read(&self, visit: &mut impl FnMut(R)) {
        match self {
            SymbolicValue::Known(_) => {}
            SymbolicValue::Read(r) => visit(*r),
            SymbolicValue::Operation(_, _, operands) => {
                operands.0.for_each_read(visit);
                operands.1.for_each_read(visit);
            }
            SymbolicValue::Part(_, _, whole) => whole.for_each_read(visit),
            SymbolicValue::Join(parts) => parts.iter().for_each(|(_, part)| part.for_each_read(visit)),
        }
    }

    /// Substitutes an expression for each read.
    pub(crate) fn substitute<S: Copy>(
        &self,
        substitution: &impl Fn(R) -> SymbolicValue<S>,
    ) -> SymbolicValue<S> {
        match self {
            SymbolicValue::Known(value) => SymbolicValue::Known(*value),
            SymbolicValue::Read(r) => substitution(*r),
            SymbolicValue::Operation(operation, ty, operands) => SymbolicValue::Operation(
                *operation,
                *ty,
                Box::new((operands.0.substitute(substitution), operands.1.substitute(substitution))),
            ),
            SymbolicValue::Part(before, bytes, whole) => {
                whole.substitute(substitution).extract_bytes(*before, *bytes)
            }
            SymbolicValue::Join(parts) => SymbolicValue::Join(
                parts.iter().map(|(before, part)| (*before, part.substitute(substitution))).collect(),
            ),
        }
    }
}

/// The bytes of a value from byte `before` on.
fn bytes_of(value: Value, before: u32, bytes: u32) -> Value {
    let shifted = value.0 >> (8 * before);
    Value(if bytes < 8 { shifted & ((1 << (8 * bytes)) - 1) } else { shifted })
}

/// A path constraint: a relation between two values that holds if control takes the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint<R> {
    pub(crate) relation: Comparison,
    /// True if the relation must hold, false if it must not.
    pub(crate) holds: bool,
    pub(crate) left: SymbolicValue<R>,
    pub(crate) right: SymbolicValue<R>,
    /// The type as which both sides are compared, signed.
    pub(crate) scalar: ScalarType,
}

impl<R: Copy> Constraint<R> {
    /// Returns true if the constraint is satisfied; `None` while a read is unknown.
    pub(crate) fn is_satisfied(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<bool> {
        let left = self.left.evaluate(read)?.to_signed(self.scalar);
        let right = self.right.evaluate(read)?.to_signed(self.scalar);
        Some(self.relation.holds(left, right) == self.holds)
    }

    /// Returns true if both sides must be equal, false if they must not; `None` for other relations.
    pub(crate) fn requires_equality(&self) -> Option<bool> {
        match self.relation {
            Comparison::Equal => Some(self.holds),
            Comparison::NotEqual => Some(!self.holds),
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
                None
            }
        }
    }

    /// Substitutes an expression for each read.
    pub(crate) fn substitute<S: Copy>(&self, substitution: &impl Fn(R) -> SymbolicValue<S>) -> Constraint<S> {
        Constraint {
            relation: self.relation,
            holds: self.holds,
            left: self.left.substitute(substitution),
            right: self.right.substitute(substitution),
            scalar: self.scalar,
        }
    }
}
