//! An event structure in the format of certificates.

use std::collections::BTreeMap;

use certificate::{EventStructure, NamedSet, ObservedValue, PathConstraint, ValueExpression};

use crate::matrix::{Bits, Matrix, Matrix64, Matrix256};
use crate::skeleton::{BASE_RELATIONS, BASE_SETS, FinalValueSource as SkeletonFinal, Skeleton};
use crate::symbolic::SymbolicValue;

/// The base sets that [`BASE_SETS`] does not list.
const UNLISTED_BASE_SETS: [&str; 13] =
    ["M", "A", "PRIV", "GLOBAL", "GROUP", "SC0", "SC1", "SC2", "SC3", "SEMSC0", "SEMSC1", "SEMSC2", "SEMSC3"];

const _: () =
    assert!(UNLISTED_BASE_SETS.len() == 5 + 2 * litmus::StorageClass::ALL.len(), "two sets for each class");

/// Returns an event structure as certificates hold it.
pub(super) fn derive_structure(skeleton: &Skeleton) -> EventStructure {
    let bases = if skeleton.len() <= 64 {
        encode_bases::<Matrix64>(skeleton)
    } else {
        encode_bases::<Matrix256>(skeleton)
    };
    EventStructure {
        events: skeleton.len(),
        bases,
        storages: skeleton.events.iter().map(|event| event.storage.map(|storage| storage.0)).collect(),
        stored: skeleton
            .events
            .iter()
            .map(|event| event.stored_value.as_ref().map(encode_expression))
            .collect(),
        constraints: skeleton
            .constraints
            .iter()
            .map(|constraint| {
                let sides = (encode_expression(&constraint.left), encode_expression(&constraint.right));
                PathConstraint::new(constraint.relation, constraint.holds, sides, constraint.scalar)
            })
            .collect(),
        forced: skeleton
            .forced_reads_from
            .iter()
            .map(|(read, write)| (usize::from(*write), usize::from(*read)))
            .collect(),
        finals: skeleton
            .final_values
            .iter()
            .map(|value| match value {
                SkeletonFinal::Expression(value) => ObservedValue::Expression(encode_expression(value)),
                SkeletonFinal::LastWrite(storage) => ObservedValue::LastWrite(storage.0),
            })
            .collect(),
        terminated: skeleton.terminated,
        cut: skeleton.is_truncated,
    }
}

fn encode_bases<M: Matrix>(skeleton: &Skeleton) -> BTreeMap<String, NamedSet> {
    let mut bases = BTreeMap::new();
    for name in BASE_SETS.iter().map(|(name, _)| *name).chain(UNLISTED_BASE_SETS) {
        let set = skeleton.base_set::<M::Set>(name, None).unwrap_or_else(M::Set::empty);
        bases.insert(name.to_owned(), NamedSet::Events(to_hexadecimal(set)));
    }
    for (name, _) in BASE_RELATIONS {
        // `rf` and `co` are choices.
        let Some(relation) = skeleton.base_relation::<M>(name) else { continue };
        let mut rows: Vec<String> =
            (0..skeleton.len()).map(|source| to_hexadecimal(relation.row(source))).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        bases.insert((*name).to_owned(), NamedSet::Rows(rows));
    }
    bases
}

/// The set as a number, the first event as its lowest bit; empty for none.
fn to_hexadecimal(set: impl Bits) -> String {
    let mut digits: Vec<u32> = Vec::new();
    for event in set.iter() {
        digits.resize(digits.len().max(event / 4 + 1), 0);
        digits[event / 4] |= 1 << (event % 4);
    }
    digits.iter().rev().filter_map(|digit| char::from_digit(*digit, 16)).collect()
}

fn encode_expression(value: &SymbolicValue<u16>) -> ValueExpression {
    match value {
        SymbolicValue::Known(value) => ValueExpression::Known(value.0),
        SymbolicValue::Read(read) => ValueExpression::Read(usize::from(*read)),
        SymbolicValue::Operation(operation, scalar, operands) => ValueExpression::new_operation(
            *operation,
            *scalar,
            encode_expression(&operands.0),
            encode_expression(&operands.1),
        ),
        SymbolicValue::Part(before, bytes, whole) => {
            ValueExpression::Part(*before, *bytes, Box::new(encode_expression(whole)))
        }
        SymbolicValue::Join(parts) => ValueExpression::Join(
            parts.iter().map(|(before, part)| (*before, encode_expression(part))).collect(),
        ),
    }
}
