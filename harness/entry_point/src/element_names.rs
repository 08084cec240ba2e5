//! Source names of the words of buffers and images.

use std::collections::HashMap;

use rspirv::spirv::Op;
use spirv_reader::{SourcePosition, Specialized, SpirvModule, SpirvType};

use crate::contents::default_image;
use crate::error::{Problem, Refusal};
use crate::layout::{element_name_in, is_descriptor_array, local_size_of};
use crate::options::AnalysisOptions;

/// Returns the source names of buffer words by set, binding, element and byte offset.
///
/// # Errors
/// As for [`plan_dispatch`](crate::plan_dispatch).
pub fn element_names(
    module: &SpirvModule,
    options: &AnalysisOptions,
    places: &[(u32, u32, u32, u64)],
) -> Result<Vec<String>, Refusal> {
    let without_position = |problem: Problem| problem.located_at(SourcePosition::Module);
    let function = module.find_entry(options.entry.as_deref())?.function;
    let by_result = HashMap::new();
    let local_size =
        local_size_of(module, &options.specialization, &by_result, function).map_err(without_position)?;
    let specialized = Specialized::new(module, &options.specialization, &by_result, Some(local_size))
        .map_err(|problem| without_position(problem.into()))?;
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
