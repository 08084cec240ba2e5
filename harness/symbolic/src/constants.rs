//! Constants and initial contents as symbolic values.

use std::rc::Rc;

use arithmetic::mask;
use spirv_reader::annotations::Initial;
use spirv_reader::{ConstantValue, Specialized};

use crate::value::{SymbolicValue, UndefOrigin};
use entry_point::{Problem, malformed};

/// Upper bound on the nesting of types.
const MAX_DEPTH: u32 = 80;

/// Returns the scalar of an annotated value at an offset; `None` if not given.
pub(crate) fn initial_at(
    specialized: &Specialized<'_>,
    initial: &Initial,
    ty: u32,
    offset: u64,
) -> Result<Option<SymbolicValue>, Problem> {
    let (mut initial, mut ty, mut offset) = (initial, ty, offset);
    for _ in 0..MAX_DEPTH {
        match initial {
            Initial::Number(number) if specialized.is_scalar(ty)? => {
                return Ok((offset == 0)
                    .then_some(SymbolicValue::Known(*number as u64 & mask(specialized.scalar_bits(ty)?))));
            }
            Initial::Number(_) => return Ok(None),
            Initial::Parts(parts) => {
                if specialized.is_scalar(ty)? {
                    return Ok(None);
                }
                let Some((index, part)) = specialized.part_at(ty, offset, parts.len() as u64)? else {
                    return Ok(None);
                };
                let Some(inner) = parts.get(index as usize) else { return Ok(None) };
                (initial, ty, offset) = (inner, part.ty, offset - part.offset);
            }
        }
    }
    Ok(None)
}

/// Returns the scalar of a value of a type at an offset.
pub(crate) fn scalar_at(
    specialized: &Specialized<'_>,
    value: &SymbolicValue,
    ty: u32,
    offset: u64,
) -> Result<SymbolicValue, Problem> {
    let (mut value, mut ty, mut offset) = (value.clone(), ty, offset);
    for _ in 0..MAX_DEPTH {
        match value {
            SymbolicValue::Composite(ref parts) => {
                let Some((index, place)) = specialized.part_at(ty, offset, parts.len() as u64)? else {
                    break;
                };
                let Some(inner) = parts.get(index as usize).cloned() else { break };
                (value, ty, offset) = (inner, place.ty, offset - place.offset);
            }
            SymbolicValue::Null => return Ok(SymbolicValue::Known(0)),
            scalar => return Ok(scalar),
        }
    }
    Err(malformed("an initializer that does not match its type"))
}

/// Returns a constant as a symbolic value.
pub(crate) fn constant_value(specialized: &Specialized<'_>, id: u32) -> Option<SymbolicValue> {
    specialized.constants().get(&id).map(symbolic_value)
}

fn symbolic_value(constant: &ConstantValue) -> SymbolicValue {
    match constant {
        ConstantValue::Number(number) => SymbolicValue::Known(*number),
        ConstantValue::Null => SymbolicValue::Null,
        ConstantValue::Undefined(id) => SymbolicValue::Undefined(UndefOrigin::Instruction(*id, u16::MAX)),
        ConstantValue::Composite(parts) => {
            SymbolicValue::Composite(Rc::new(parts.iter().map(symbolic_value).collect()))
        }
    }
}

pub(crate) fn part_of_value(value: &SymbolicValue, index: usize) -> Option<SymbolicValue> {
    match value {
        SymbolicValue::Composite(parts) => parts.get(index).cloned(),
        SymbolicValue::Null => Some(SymbolicValue::Null),
        SymbolicValue::Opaque => Some(SymbolicValue::Opaque),
        SymbolicValue::Undefined(origin) => Some(SymbolicValue::Undefined(*origin)),
        _ => None,
    }
}

pub(crate) fn known_number(value: &SymbolicValue) -> Option<u64> {
    match value {
        SymbolicValue::Known(number) => Some(*number),
        SymbolicValue::Null => Some(0),
        _ => None,
    }
}
