//! The values that a storage may hold, from the text of a program alone.
//!
//! Exact enough for locks and flags: their stores and exchanges write constants. An over-approximation, since each
//! write counts as if it were executed.

use litmus::{
    AccessKind, ArithmeticOperation, LocationId, LocationInit, MemoryAccess, Operand, Performer,
    RmwOperation, Test, Value,
};

use crate::cells::Extent;
use crate::symbolic::SymbolicValue;

/// Limit of values of one storage.
const MAX_VALUES: usize = 8;

/// Returns every value that a read of the storage may return; `None` if they are unknown or too many.
pub fn stored_values(test: &Test, storage: LocationId) -> Option<Vec<Value>> {
    if !has_one_name(test, storage) {
        return None;
    }
    let scalar = test.location(storage).scalar_type();
    let mut values = vec![test.initial_value(storage, 0)];
    let mut written = Vec::new();
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        let Some(access) = instruction.kind.access() else { continue };
        if test.storage_of(access.place.location) == storage {
            if !is_whole_scalar(test, access) {
                return None;
            }
            written.extend(written_value(access)?);
        }
    }
    // Each round applies every write to every value.
    let mut next = 0;
    while let Some(value) = values.get(next).copied() {
        next += 1;
        for operation in &written {
            let constant = |operand| Value::from_constant(operand, scalar);
            let result = match operation {
                WrittenValue::Constant(operand) => constant(*operand),
                WrittenValue::Computed(operation, operand) => {
                    let known = SymbolicValue::<u16>::new_operation(
                        *operation,
                        scalar,
                        SymbolicValue::Known(value),
                        SymbolicValue::Known(constant(*operand)),
                    );
                    known.known_value()?
                }
            };
            if !values.contains(&result) {
                values.push(result);
            }
        }
        if values.len() > MAX_VALUES {
            return None;
        }
    }
    Some(values)
}

/// Returns true if every access to the storage is one of the whole.
pub(crate) fn is_always_whole(test: &Test, storage: LocationId) -> bool {
    let accesses =
        test.threads.iter().flat_map(|thread| &thread.instructions).filter_map(|i| i.kind.access());
    has_one_name(test, storage)
        && accesses
            .filter(|access| test.storage_of(access.place.location) == storage)
            .all(|access| is_whole_scalar(test, access))
}

/// Returns true if the storage has one name and a constant initial value.
fn has_one_name(test: &Test, storage: LocationId) -> bool {
    let names = (0..test.locations.len()).map(|index| LocationId(index as u16));
    names.filter(|name| test.storage_of(*name) == storage).count() == 1
        && test.khronos.is_none()
        && matches!(test.location(storage).init, LocationInit::Constant(_))
}

/// The value that an instruction writes.
enum WrittenValue {
    Constant(i64),
    /// An operation on the value read and a constant.
    Computed(ArithmeticOperation, i64),
}

/// Returns the value that an access writes, without an item if it only reads; `None` if it is unknown.
fn written_value(access: &MemoryAccess) -> Option<Option<WrittenValue>> {
    let constant = |operand| match operand {
        Operand::Constant(constant) => Some(constant),
        Operand::Register(_) => None,
    };
    let written = match access.kind {
        AccessKind::Load(_) | AccessKind::Await { .. } => return Some(None),
        AccessKind::Store(values) => WrittenValue::Constant(constant(values.first())?),
        AccessKind::Rmw { operation, .. } => match operation {
            RmwOperation::Exchange(operand) | RmwOperation::CompareExchange { value: operand, .. } => {
                WrittenValue::Constant(constant(operand)?)
            }
            RmwOperation::Fetch(operation, operand) => WrittenValue::Computed(operation, constant(operand)?),
        },
    };
    Some(Some(written))
}

/// Returns true if the access is one of a whole storage that is a single number.
fn is_whole_scalar(test: &Test, access: &MemoryAccess) -> bool {
    access.performer != Performer::Cooperative
        && access.scalar_accesses().count() == 1
        && test.location(access.place.location).components == 1
        && access.place.scalar_type(test) == test.location(access.place.location).scalar_type()
        && Extent::from_place(test, &access.place).is_whole
}
