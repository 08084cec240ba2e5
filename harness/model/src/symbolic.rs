//! Symbolic values: expressions over the results of reads.

use litmus::{ArithmeticOperation, BranchRelation, ScalarType, Value};

/// Index of a read among the reads of one thread's path, in program order.
pub(crate) type LocalRead = u16;

/// A value as an expression over reads. `R` names a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Symbolic<R> {
    /// A known value.
    Known(Value),
    /// The result of a read.
    Read(R),
    /// An operation on two values of a type.
    Operation(ArithmeticOperation, ScalarType, Box<(Symbolic<R>, Symbolic<R>)>),
    /// Some bytes of a value: the number skipped, and the number taken.
    Part(u32, u32, Box<Symbolic<R>>),
    /// A value concatenated from parts, each with its byte offset.
    Join(Vec<(u32, Symbolic<R>)>),
}

impl<R: Copy> Symbolic<R> {
    /// Builds an operation, folded if both operands are known.
    pub(crate) fn operation(
        operation: ArithmeticOperation,
        ty: ScalarType,
        left: Symbolic<R>,
        right: Symbolic<R>,
    ) -> Symbolic<R> {
        match (&left, &right) {
            (Symbolic::Known(l), Symbolic::Known(r)) => Symbolic::Known(operation.apply(*l, *r, ty)),
            _ => Symbolic::Operation(operation, ty, Box::new((left, right))),
        }
    }

    /// Returns a value of type `from` as a register of type `to` holds it; see [`Value::extend`].
    pub(crate) fn extended(value: Symbolic<R>, from: ScalarType, to: ScalarType) -> Symbolic<R> {
        if !from.is_signed() || from.bits() >= to.bits() {
            return value;
        }
        // The identity (v ⊕ s) − s with the sign bit s.
        let sign = Symbolic::Known(Value(1 << (from.bits() - 1)));
        let flipped = Symbolic::operation(ArithmeticOperation::Xor, to, value, sign.clone());
        Symbolic::operation(ArithmeticOperation::Subtract, to, flipped, sign)
    }

    /// Returns `bytes` bytes of a value, starting at byte `before`.
    pub(crate) fn part(self, before: u32, bytes: u32) -> Symbolic<R> {
        match self {
            Symbolic::Known(value) => Symbolic::Known(bytes_of(value, before, bytes)),
            other => Symbolic::Part(before, bytes, Box::new(other)),
        }
    }

    /// Returns the value if it depends on no read.
    pub(crate) fn known(&self) -> Option<Value> {
        match self {
            Symbolic::Known(value) => Some(*value),
            _ => None,
        }
    }

    /// Evaluates the expression, with `read` for the value of each read; `None` if one is unknown.
    pub(crate) fn evaluate(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<Value> {
        match self {
            Symbolic::Known(value) => Some(*value),
            Symbolic::Read(r) => read(*r),
            Symbolic::Operation(operation, ty, operands) => {
                let left = operands.0.evaluate(read)?;
                let right = operands.1.evaluate(read)?;
                Some(operation.apply(left, right, *ty))
            }
            Symbolic::Part(before, bytes, whole) => Some(bytes_of(whole.evaluate(read)?, *before, *bytes)),
            Symbolic::Join(parts) => {
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
            Symbolic::Known(_) => {}
            Symbolic::Read(r) => visit(*r),
            Symbolic::Operation(_, _, operands) => {
                operands.0.for_each_read(visit);
                operands.1.for_each_read(visit);
            }
            Symbolic::Part(_, _, whole) => whole.for_each_read(visit),
            Symbolic::Join(parts) => parts.iter().for_each(|(_, part)| part.for_each_read(visit)),
        }
    }

    /// Substitutes an expression for each read.
    pub(crate) fn map<S: Copy>(&self, meaning: &impl Fn(R) -> Symbolic<S>) -> Symbolic<S> {
        match self {
            Symbolic::Known(value) => Symbolic::Known(*value),
            Symbolic::Read(r) => meaning(*r),
            Symbolic::Operation(operation, ty, operands) => Symbolic::Operation(
                *operation,
                *ty,
                Box::new((operands.0.map(meaning), operands.1.map(meaning))),
            ),
            Symbolic::Part(before, bytes, whole) => whole.map(meaning).part(*before, *bytes),
            Symbolic::Join(parts) => {
                Symbolic::Join(parts.iter().map(|(before, part)| (*before, part.map(meaning))).collect())
            }
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
    pub(crate) relation: BranchRelation,
    /// True if the relation must hold, false if it must not.
    pub(crate) holds: bool,
    pub(crate) left: Symbolic<R>,
    pub(crate) right: Symbolic<R>,
    /// The type as which both sides are compared, signed.
    pub(crate) scalar: ScalarType,
}

impl<R: Copy> Constraint<R> {
    /// Returns true if the constraint is satisfied; `None` while a read is unknown.
    pub(crate) fn met(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<bool> {
        let left = self.left.evaluate(read)?.to_signed(self.scalar);
        let right = self.right.evaluate(read)?.to_signed(self.scalar);
        Some(self.relation.holds(left, right) == self.holds)
    }

    /// Substitutes an expression for each read.
    pub(crate) fn map<S: Copy>(&self, meaning: &impl Fn(R) -> Symbolic<S>) -> Constraint<S> {
        Constraint {
            relation: self.relation,
            holds: self.holds,
            left: self.left.map(meaning),
            right: self.right.map(meaning),
            scalar: self.scalar,
        }
    }
}
