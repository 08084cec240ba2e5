//! Comparisons as relations of what is known and what is not.

use rspirv::spirv::Op;

use crate::value::Relation;

/// A comparison as a relation, whether its sides are swapped, and whether it is negated.
pub(crate) fn relation(op: Op) -> Option<(Relation, bool, bool)> {
    Some(match op {
        Op::IEqual => (Relation::Equal, false, false),
        Op::INotEqual => (Relation::Equal, false, true),
        Op::ULessThan => (Relation::UnsignedLess, false, false),
        Op::ULessThanEqual => (Relation::UnsignedLessOrEqual, false, false),
        Op::UGreaterThan => (Relation::UnsignedLess, true, false),
        Op::UGreaterThanEqual => (Relation::UnsignedLessOrEqual, true, false),
        Op::SLessThan => (Relation::SignedLess, false, false),
        Op::SLessThanEqual => (Relation::SignedLessOrEqual, false, false),
        Op::SGreaterThan => (Relation::SignedLess, true, false),
        Op::SGreaterThanEqual => (Relation::SignedLessOrEqual, true, false),
        _ => return None,
    })
}
