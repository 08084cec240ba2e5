//! The layout of types and the names of their elements.

use std::collections::HashMap;

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::annotations::Initial;
use spirv_reader::{Specialized, SpirvModule, SpirvType, is_synthetic_name};

use crate::contents::default_image;
use crate::error::{Problem, Refusal};
use crate::options::AnalysisOptions;

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

/// Returns a module with the constants that options give, for the workgroups of its entry point.
///
/// # Errors
/// Fails if the entry point or the constants are malformed.
pub fn specialize<'m>(
    module: &'m SpirvModule,
    options: &AnalysisOptions,
) -> Result<Specialized<'m>, Refusal> {
    let function = module.find_entry(options.entry.as_deref())?.function;
    let (by_id, by_result) = (&options.specialization, HashMap::new());
    let local_size = local_size_of(module, by_id, &by_result, function)?;
    Ok(Specialized::new(module, by_id, &by_result, Some(local_size))?)
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

/// The identity of a memory object as one invocation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The id of the variable, or of the first variable with the same binding.
    pub variable: u32,
    /// The element of a descriptor array, the workgroup's copy, or the activation of the function.
    pub instance: u64,
}

/// A location in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryCell {
    pub object: ObjectId,
    pub offset: u64,
    pub bytes: u32,
}

/// The offsets of cells whose position depends on read values: above those of buffers.
const VARIABLE_OFFSETS: u64 = 1 << 62;

impl MemoryCell {
    /// Returns the cell for all accesses of an object at variable positions.
    pub fn at_variable_offset(object: ObjectId, bytes: u32) -> MemoryCell {
        // Cells of different sizes do not overlap.
        MemoryCell { object, offset: VARIABLE_OFFSETS | u64::from(bytes) << 32, bytes }
    }

    /// Returns true if the position depends on read values.
    pub fn has_variable_offset(self) -> bool {
        self.offset >= VARIABLE_OFFSETS
    }
}

/// Returns the source names of buffer words by set, binding, element and byte offset.
///
/// # Errors
/// As for [`plan_dispatch`](crate::plan_dispatch).
pub fn element_names(
    module: &SpirvModule,
    options: &AnalysisOptions,
    places: &[(u32, u32, u32, u64)],
) -> Result<Vec<String>, Refusal> {
    let specialized = specialize(module, options)?;
    let mut variables: HashMap<(u32, u32), u32> = HashMap::new();
    for id in module.variables.keys() {
        let decorations = module.decorations_of(*id);
        if let Some(binding) = decorations.binding {
            variables.entry((decorations.set.unwrap_or(0), binding)).or_insert(*id);
        }
    }
    let name = |(set, binding, element, offset): &(u32, u32, u32, u64)| match variables.get(&(*set, *binding))
    {
        Some(variable) if let Some(width) = image_row_length(module, options, *variable) => {
            let name = module.variable_name(*variable, module.variables.get(variable).map_or(0, |of| of.ty));
            let texel = offset / 4;
            match width {
                Some(width) => format!("{name}[{},{}]", texel % u64::from(width), texel / u64::from(width)),
                None => format!("{name}[{texel}]"),
            }
        }
        Some(variable) => {
            let array = module
                .variables
                .get(variable)
                .is_some_and(|of| is_descriptor_array(module, *variable, of.ty));
            // Instance 0 is a single buffer; the elements of an array are counted from 1.
            let instance = if array { u64::from(*element) + 1 } else { 0 };
            let (name, left) = element_name_in(&specialized, *variable, instance, *offset);
            if left == 0 { name } else { format!("{name}+{left}") }
        }
        None => format!("{set}.{binding}@{offset}"),
    };
    Ok(places.iter().map(name).collect())
}

/// Returns the row length of an image, `Some(None)` for one dimension, and `None` for other variables.
fn image_row_length(module: &SpirvModule, options: &AnalysisOptions, variable: u32) -> Option<Option<u32>> {
    let ty = module.variables.get(&variable)?.ty;
    let Some(SpirvType::Handle(Op::TypeImage)) = module.types.get(&ty) else { return None };
    let dimension = *module.handle_operands.get(&ty)?.get(1)?;
    let decorations = module.decorations_of(variable);
    let descriptor = (decorations.set.unwrap_or(0), decorations.binding?);
    let width = options
        .images
        .get(&descriptor)
        .map_or(default_image(dimension, false).size[0], |image| image.size[0]);
    Some((dimension == 1).then_some(width.max(1)))
}
