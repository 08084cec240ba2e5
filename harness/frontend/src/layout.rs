//! Constants and initial contents as symbolic values, and the layout of types.

use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::{Op, StorageClass};
use rustc_hash::FxHashMap;
use spirv_reader::annotations::Initial;
use spirv_reader::{ConstantValue, SpirvModule, SpirvType, is_synthetic_name};

use crate::error::{Problem, malformed};
use crate::value::{SymbolicValue, UndefOrigin};

/// Upper bound on the nesting of types.
const MAX_DEPTH: u32 = 80;

/// A module with known specialization constants.
pub(crate) struct Specialized<'m> {
    layout: spirv_reader::Specialized<'m>,
    constants: FxHashMap<u32, SymbolicValue>,
}

impl<'m> Deref for Specialized<'m> {
    type Target = spirv_reader::Specialized<'m>;

    fn deref(&self) -> &spirv_reader::Specialized<'m> {
        &self.layout
    }
}

impl<'m> Specialized<'m> {
    /// Computes all constants, as [`spirv_reader::Specialized::new`] does.
    pub fn new(
        module: &'m SpirvModule,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<Specialized<'m>, Problem> {
        let layout = spirv_reader::Specialized::new(module, by_id, by_result, workgroup)?;
        let constants = layout.constants().iter().map(|(id, value)| (*id, symbolic_value(value))).collect();
        Ok(Specialized { layout, constants })
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

/// The operand of an image type for images that are read and written without a sampler.
pub(crate) const STORAGE_IMAGE: u32 = 2;

/// Returns true for a type, or an array of it, of storage images.
pub(crate) fn is_storage_image(module: &SpirvModule, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => {
            is_storage_image(module, *element)
        }
        Some(SpirvType::Handle(Op::TypeImage)) => {
            module.handle_operands.get(&ty).and_then(|handle| handle.get(5)) == Some(&STORAGE_IMAGE)
        }
        _ => false,
    }
}

/// Returns the size of the workgroup of an entry point.
pub(crate) fn local_size_of(
    module: &SpirvModule,
    by_id: &HashMap<u32, u64>,
    by_result: &HashMap<u32, Initial>,
    function: u32,
) -> Result<[u32; 3], Problem> {
    Ok(Specialized::new(module, by_id, by_result, None)?.local_size(function)?)
}

/// Returns true if a variable is an array of descriptors.
pub(crate) fn is_descriptor_array(module: &SpirvModule, variable: u32, ty: u32) -> bool {
    let Some(found) = module.variables.get(&variable).filter(|found| found.ty == ty) else {
        return false;
    };
    let element = match module.types.get(&ty) {
        Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => *element,
        _ => return false,
    };
    matches!(found.class, StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::UniformConstant)
        && module.decorations_of(ty).stride.is_none()
        && matches!(module.types.get(&element), Some(SpirvType::Struct { .. } | SpirvType::Handle(_)))
}

/// Returns the source name of the scalar at an offset, and the rest of the offset.
pub(crate) fn element_name_in(
    specialized: &Specialized<'_>,
    variable: u32,
    instance: u64,
    mut offset: u64,
) -> (String, u64) {
    let module = specialized.module;
    let Some(found) = module.variables.get(&variable) else { return (module.display_name(variable), offset) };
    let mut ty = found.ty;
    let is_array = is_descriptor_array(module, variable, ty);
    if is_array {
        ty = specialized.part_of(ty, 0).map_or(ty, |part| part.ty);
    }
    let mut name = module.variable_name(variable, ty);
    if is_array {
        name = format!("{name}[{}]", instance.saturating_sub(1));
    } else if instance > 0 {
        name = format!("{name}@{instance}");
    }
    for _ in 0..64 {
        if specialized.is_scalar(ty).unwrap_or(true) {
            break;
        }
        let Ok(Some((index, part))) = specialized.part_at(ty, offset, u64::MAX) else { break };
        match module.types.get(&ty) {
            Some(SpirvType::Struct { members }) => {
                let member =
                    module.member_names.get(&(ty, index as u32)).filter(|name| !is_synthetic_name(name));
                match member {
                    Some(member) => name = format!("{name}.{member}"),
                    None if members.len() == 1 => {}
                    None => name = format!("{name}.{index}"),
                }
            }
            _ => name = format!("{name}[{index}]"),
        }
        (ty, offset) = (part.ty, offset.saturating_sub(part.offset));
    }
    (name, offset)
}
