//! The published contents of buffers.

use std::collections::BTreeSet;

use entry_point::{AnalysisOptions, InputBytes};
use results::wire::BufferContents;
use rspirv::spirv::ImageFormat;
use spirv_reader::{SpirvModule, SpirvType};
use walk::FinalBuffer;

/// Returns the final contents of buffers, if they are kept; those that no invocation can write have their initial ones.
pub(crate) fn all_contents(
    module: &SpirvModule,
    options: &AnalysisOptions,
    finals: &[FinalBuffer],
) -> Vec<BufferContents> {
    let is_unchanged = |at: (u32, u32)| !finals.iter().any(|known| (known.at.0, known.at.1) == at);
    let unchanged = options.buffers.iter().filter(|(at, _)| !finals.is_empty() && is_unchanged(**at));
    let initial = |((set, binding), bytes): (&(u32, u32), &InputBytes)| FinalBuffer {
        at: (*set, *binding, 0),
        bytes: bytes.to_vec(),
        first_open_byte: None,
        first_unknown_byte: None,
        first_undefined_byte: None,
    };
    let initial: Vec<FinalBuffer> = unchanged.map(initial).collect();
    finals.iter().chain(&initial).map(|buffer| buffer_contents(module, buffer)).collect()
}

/// Converts the final contents of a buffer to their published record.
fn buffer_contents(module: &SpirvModule, buffer: &FinalBuffer) -> BufferContents {
    let (set, binding, element) = buffer.at;
    let found = module.variables.iter().find(|(id, _)| module.descriptor_of(**id) == Some((set, binding)));
    let name = found.map(|(id, variable)| module.variable_name(*id, variable.ty)).unwrap_or_default();
    let bytes = BufferContents::to_hexadecimal(&buffer.bytes);
    let scalars = found.and_then(|(_, variable)| scalar_names(module, variable.ty));
    let scalar = scalars.map(|names| Vec::from_iter(names).join(" "));
    let unknown = buffer.first_unknown_byte;
    BufferContents { set, binding, element, name, scalar, bytes, unknown, device: None }
}

/// Returns the types of the numbers in a type, or the format of an image; `None` for other contents.
fn scalar_names(module: &SpirvModule, ty: u32) -> Option<BTreeSet<String>> {
    let name = match module.types.get(&ty)? {
        SpirvType::Integer { bits, signed } => format!("{}{bits}", if *signed { 'i' } else { 'u' }),
        SpirvType::Float { bits } => format!("f{bits}"),
        SpirvType::Vector { element: inner, .. }
        | SpirvType::Matrix { column: inner, .. }
        | SpirvType::Array { element: inner, .. }
        | SpirvType::RuntimeArray { element: inner } => return scalar_names(module, *inner),
        SpirvType::Struct { members } => {
            let names = members.iter().map(|member| scalar_names(module, *member));
            return names.collect::<Option<Vec<_>>>().map(|names| names.into_iter().flatten().collect());
        }
        // Operand 6 of an image type is the format.
        SpirvType::Handle(_) => {
            let format = ImageFormat::from_u32(*module.handle_operands.get(&ty)?.get(6)?);
            format!("{:?}", format.filter(|known| *known != ImageFormat::Unknown)?).to_lowercase()
        }
        _ => return None,
    };
    Some(BTreeSet::from([name]))
}
