//! Comparison instructions as relations.

use rspirv::spirv::Op;

use crate::value::OrderRelation;

/// Returns the relation of a comparison, and whether it is swapped and negated.
pub fn relation(op: Op) -> Option<(OrderRelation, bool, bool)> {
    Some(match op {
        Op::IEqual => (OrderRelation::Equal, false, false),
        Op::INotEqual => (OrderRelation::Equal, false, true),
        Op::ULessThan => (OrderRelation::UnsignedLess, false, false),
        Op::ULessThanEqual => (OrderRelation::UnsignedLessOrEqual, false, false),
        Op::UGreaterThan => (OrderRelation::UnsignedLess, true, false),
        Op::UGreaterThanEqual => (OrderRelation::UnsignedLessOrEqual, true, false),
        Op::SLessThan => (OrderRelation::SignedLess, false, false),
        Op::SLessThanEqual => (OrderRelation::SignedLessOrEqual, false, false),
        Op::SGreaterThan => (OrderRelation::SignedLess, true, false),
        Op::SGreaterThanEqual => (OrderRelation::SignedLessOrEqual, true, false),
        _ => return None,
    })
}
