//! Constants and initial contents as symbolic values.

use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use arithmetic::mask;
use rustc_hash::FxHashMap;
use spirv_reader::annotations::Initial;
use spirv_reader::{ConstantValue, SpirvModule};

use crate::value::{SymbolicValue, UndefOrigin};
use entry_point::{Problem, malformed};

/// Upper bound on the nesting of types.
const MAX_DEPTH: u32 = 80;

/// A module with its constants as symbolic values.
pub(crate) struct SymbolicModule<'m> {
    layout: spirv_reader::Specialized<'m>,
    constants: FxHashMap<u32, SymbolicValue>,
}

impl<'m> Deref for SymbolicModule<'m> {
    type Target = spirv_reader::Specialized<'m>;

    fn deref(&self) -> &spirv_reader::Specialized<'m> {
        &self.layout
    }
}

impl<'m> SymbolicModule<'m> {
    /// Computes all constants, as [`spirv_reader::Specialized::new`] does.
    pub fn new(
        module: &'m SpirvModule,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<SymbolicModule<'m>, Problem> {
        let layout = spirv_reader::Specialized::new(module, by_id, by_result, workgroup)?;
        let constants = layout.constants().iter().map(|(id, value)| (*id, symbolic_value(value))).collect();
        Ok(SymbolicModule { layout, constants })
    }

    pub fn constant_value(&self, id: u32) -> Option<&SymbolicValue> {
        self.constants.get(&id)
    }

    /// Returns the scalar of an annotated value at an offset; `None` if not given.
    pub fn initial_at(
        &self,
        initial: &Initial,
        ty: u32,
        offset: u64,
    ) -> Result<Option<SymbolicValue>, Problem> {
        let (mut initial, mut ty, mut offset) = (initial, ty, offset);
        for _ in 0..MAX_DEPTH {
            match initial {
                Initial::Number(number) if self.is_scalar(ty)? => {
                    return Ok((offset == 0)
                        .then_some(SymbolicValue::Known(*number as u64 & mask(self.scalar_bits(ty)?))));
                }
                Initial::Number(_) => return Ok(None),
                Initial::Parts(parts) => {
                    if self.is_scalar(ty)? {
                        return Ok(None);
                    }
                    let Some((index, part)) = self.part_at(ty, offset, parts.len() as u64)? else {
                        return Ok(None);
                    };
                    let Some(inner) = parts.get(index as usize) else { return Ok(None) };
                    (initial, ty, offset) = (inner, part.ty, offset - part.offset);
                }
            }
        }
        Ok(None)
    }

    pub fn scalar_at(&self, value: &SymbolicValue, ty: u32, offset: u64) -> Result<SymbolicValue, Problem> {
        let (mut value, mut ty, mut offset) = (value.clone(), ty, offset);
        for _ in 0..MAX_DEPTH {
            match value {
                SymbolicValue::Composite(ref parts) => {
                    let Some((index, place)) = self.part_at(ty, offset, parts.len() as u64)? else { break };
                    let Some(inner) = parts.get(index as usize).cloned() else { break };
                    (value, ty, offset) = (inner, place.ty, offset - place.offset);
                }
                SymbolicValue::Null => return Ok(SymbolicValue::Known(0)),
                scalar => return Ok(scalar),
            }
        }
        Err(malformed("an initializer that does not match its type"))
    }
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
