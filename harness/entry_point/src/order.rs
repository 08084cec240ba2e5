//! Scopes, memory semantics and memory operands, with the rules for modules of the GLSL450 memory model.
//!
//! Those modules are read as `spirv-opt --upgrade-memory-model` rewrites them. An access through `Coherent`
//! or `Volatile` is non-private and makes its memory available or visible to the queue family. Workgroup
//! memory is so for the workgroup, and Device scope means the queue family. Everything else is private.

use litmus::{Access, Scope, Semantics, StorageClass};
use spirv_reader::{MemoryOperands, SpirvModule, scope_from_word, semantics_from_word};

use crate::error::{Problem, unsupported};

/// Parses a scope of a shader.
pub fn scope_from_number(number: u64, vulkan: bool) -> Result<Scope, Problem> {
    match scope_from_word(number, vulkan)? {
        Scope::CrossDevice => Err(unsupported("CrossDevice scope")),
        scope => Ok(scope),
    }
}

/// Parses memory semantics of a shader.
pub fn semantics_from_number(number: u64) -> Result<Semantics, Problem> {
    let semantics = semantics_from_word(number)?;
    if semantics.sequential {
        return Err(unsupported(
            "SequentiallyConsistent semantics (VUID-StandaloneSpirv-MemorySemantics-10866)",
        ));
    }
    Ok(semantics)
}

/// Returns the strength of a plain access with these operands; `number` evaluates constants.
pub fn access_strength(
    operands: MemoryOperands,
    class: StorageClass,
    module: &SpirvModule,
    coherent: bool,
    store: bool,
    number: impl Fn(u32) -> Option<u64>,
) -> Result<Access, Problem> {
    if !module.uses_vulkan_model {
        let coherent = coherent || operands.volatile;
        // Under the GLSL450 memory model, declarations decide in place of memory operands.
        return Ok(match class {
            StorageClass::Workgroup => Access::Coherent { scope: Scope::Workgroup },
            StorageClass::Buffer | StorageClass::Image | StorageClass::Output if coherent => {
                Access::Coherent { scope: Scope::QueueFamily }
            }
            StorageClass::Buffer | StorageClass::Image | StorageClass::Output => {
                module.plain_access_scope.map_or(Access::Private, |scope| Access::Coherent { scope })
            }
        });
    }
    let scope_id = if store { operands.available } else { operands.visible };
    match scope_id {
        Some(id) => {
            let number = number(id).ok_or_else(|| unsupported("a scope that is not a constant"))?;
            Ok(Access::Coherent { scope: scope_from_number(number, true)? })
        }
        // By their languages, memory of the workgroup is coherent, and so is memory that the source declares so.
        None if module.is_by_language && class == StorageClass::Workgroup => {
            Ok(Access::Coherent { scope: Scope::Workgroup })
        }
        None if module.is_by_language && coherent => Ok(Access::Coherent { scope: Scope::QueueFamily }),
        None => Ok(match module.plain_access_scope {
            Some(scope) => Access::Coherent { scope },
            None if operands.non_private => Access::NonPrivate,
            None => Access::Private,
        }),
    }
}
