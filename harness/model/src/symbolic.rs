//! Values that are not known yet: expressions over what reads will return.

use litmus::{ArithmeticOperation, BranchRelation, ScalarType, Value};

/// Index of a read among the reads of one thread's path, in program order.
pub(crate) type LocalRead = u16;

/// A value as an expression over reads. `R` names a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Symbolic<R> {
    /// A known value.
    Known(Value),
    /// What a read returns.
    Read(R),
    /// An operation on two values of a type.
    Operation(ArithmeticOperation, ScalarType, Box<(Symbolic<R>, Symbolic<R>)>),
}

impl<R: Copy> Symbolic<R> {
    /// An operation, computed at once where both operands are known.
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

    /// The value where it depends on no read.
    pub(crate) fn known(&self) -> Option<Value> {
        match self {
            Symbolic::Known(value) => Some(*value),
            _ => None,
        }
    }

    /// The value when `read` gives the value of every read it depends on; `None` as soon as one is not known.
    pub(crate) fn evaluate(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<Value> {
        match self {
            Symbolic::Known(value) => Some(*value),
            Symbolic::Read(r) => read(*r),
            Symbolic::Operation(operation, ty, operands) => {
                let left = operands.0.evaluate(read)?;
                let right = operands.1.evaluate(read)?;
                Some(operation.apply(left, right, *ty))
            }
        }
    }

    /// Visits the reads it depends on.
    pub(crate) fn for_each_read(&self, visit: &mut impl FnMut(R)) {
        match self {
            Symbolic::Known(_) => {}
            Symbolic::Read(r) => visit(*r),
            Symbolic::Operation(_, _, operands) => {
                operands.0.for_each_read(visit);
                operands.1.for_each_read(visit);
            }
        }
    }

    /// The same expression with its reads renamed.
    pub(crate) fn map<S: Copy>(&self, rename: &impl Fn(R) -> S) -> Symbolic<S> {
        match self {
            Symbolic::Known(value) => Symbolic::Known(*value),
            Symbolic::Read(r) => Symbolic::Read(rename(*r)),
            Symbolic::Operation(operation, ty, operands) => Symbolic::Operation(
                *operation,
                *ty,
                Box::new((operands.0.map(rename), operands.1.map(rename))),
            ),
        }
    }
}

/// What must hold of the values read for control to have taken a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint<R> {
    pub(crate) relation: BranchRelation,
    /// Whether the relation must hold or must not.
    pub(crate) holds: bool,
    pub(crate) left: Symbolic<R>,
    pub(crate) right: Symbolic<R>,
    /// The type as which both sides are compared, signed.
    pub(crate) scalar: ScalarType,
}

impl<R: Copy> Constraint<R> {
    /// Whether it is met; `None` while a read is not known.
    pub(crate) fn met(&self, read: &mut impl FnMut(R) -> Option<Value>) -> Option<bool> {
        let left = self.left.evaluate(read)?.signed(self.scalar);
        let right = self.right.evaluate(read)?.signed(self.scalar);
        Some(self.relation.holds(left, right) == self.holds)
    }

    /// The same constraint with its reads renamed.
    pub(crate) fn map<S: Copy>(&self, rename: &impl Fn(R) -> S) -> Constraint<S> {
        Constraint {
            relation: self.relation,
            holds: self.holds,
            left: self.left.map(rename),
            right: self.right.map(rename),
            scalar: self.scalar,
        }
    }
}
