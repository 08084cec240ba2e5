//! The layout of types and the names of their elements.

use std::collections::HashMap;

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::annotations::Initial;
use spirv_reader::{Specialized, SpirvModule, SpirvType, is_synthetic_name};

use crate::error::Problem;

/// The operand of an image type for images that are read and written without a sampler.
pub const STORAGE_IMAGE: u32 = 2;

/// Returns true for a type, or an array of it, of storage images.
pub fn is_storage_image(module: &SpirvModule, ty: u32) -> bool {
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
pub fn local_size_of(
    module: &SpirvModule,
    by_id: &HashMap<u32, u64>,
    by_result: &HashMap<u32, Initial>,
    function: u32,
) -> Result<[u32; 3], Problem> {
    Ok(Specialized::new(module, by_id, by_result, None)?.local_size(function)?)
}

/// Returns true if a variable is an array of descriptors.
pub fn is_descriptor_array(module: &SpirvModule, variable: u32, ty: u32) -> bool {
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
pub fn element_name_in(
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
