//! The published contents of buffers.

use entry_point::AnalysisOptions;
use results::wire::BufferContents;
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
    let initial = |((set, binding), bytes): (&(u32, u32), &Vec<u8>)| FinalBuffer {
        at: (*set, *binding, 0),
        bytes: bytes.clone(),
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
    let scalar = found.and_then(|(_, variable)| scalar_name(module, variable.ty));
    let unknown = buffer.first_unknown_byte;
    BufferContents { set, binding, element, name, scalar, bytes, unknown, device: None }
}

/// Returns the type of all numbers in a type; `None` if there are several.
fn scalar_name(module: &SpirvModule, ty: u32) -> Option<String> {
    match module.types.get(&ty)? {
        SpirvType::Integer { bits, signed } => Some(format!("{}{bits}", if *signed { 'i' } else { 'u' })),
        SpirvType::Float { bits } => Some(format!("f{bits}")),
        SpirvType::Vector { element: inner, .. }
        | SpirvType::Matrix { column: inner, .. }
        | SpirvType::Array { element: inner, .. }
        | SpirvType::RuntimeArray { element: inner } => scalar_name(module, *inner),
        SpirvType::Struct { members } => {
            let mut names = members.iter().map(|member| scalar_name(module, *member));
            let first = names.next()??;
            names.all(|name| name.as_ref() == Some(&first)).then_some(first)
        }
        _ => None,
    }
}
