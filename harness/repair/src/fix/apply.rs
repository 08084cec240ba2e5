//! Applies changes to a module.

use std::collections::BTreeSet;

use litmus::{Scope, StorageClass};
use rspirv::spirv::StorageClass as Class;
use spirv_reader::{ShaderLanguage, SpirvModule, read_module};

use super::change::{ChangeKind, KernelChange};
use super::edit::ModuleEdit;

/// Returns the changed module; `None` if a change is impossible.
pub(super) fn apply_changes(module: &SpirvModule, changes: &[&KernelChange]) -> Option<SpirvModule> {
    let mut edit = ModuleEdit::for_module(module);
    for change in changes {
        match &change.kind {
            ChangeKind::InsertBarrier { word, scope: Scope::Subgroup, .. } => {
                let classes = [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image];
                edit.insert_control_barrier(*word, Scope::Subgroup, &classes)?;
            }
            ChangeKind::InsertBarrier { word, class, .. } => {
                insert_barrier(&mut edit, module, *word, *class)?;
            }
            ChangeKind::InsertFences { words, classes, .. } => {
                words.iter().try_for_each(|word| edit.insert_memory_barrier(*word, classes))?;
            }
            ChangeKind::MakeCoherent { root, .. } => edit.make_coherent(*root)?,
            ChangeKind::ZeroInitialize(id) => edit.zero_initialize(*id)?,
            ChangeKind::StrengthenOrder { site, more, .. } => {
                edit.strengthen_order(site.instruction(module)?, *more)?;
            }
            ChangeKind::WidenScope { site, .. } => edit.widen_scope(site.instruction(module)?)?,
            ChangeKind::MakeUpdate { function, updates, class, .. } => {
                let function = module.functions.get(function)?;
                updates.iter().try_for_each(|update| edit.make_update(function, update, *class))?;
            }
            ChangeKind::MakeImageUpdate { function, updates, .. } => {
                let function = module.functions.get(function)?;
                updates.iter().try_for_each(|update| edit.make_image_update(function, update))?;
            }
            ChangeKind::MakeAtomic { sites, class } => {
                for site in sites {
                    let types = &module.functions.get(&site.function)?.types;
                    let ty = |id: u32| {
                        let constant = || module.constants.get(&id).map(|(ty, _)| *ty);
                        types.get(&id).copied().or_else(constant)
                    };
                    edit.make_atomic(site.instruction(module)?, ty, *class)?;
                }
            }
        }
    }
    let mut changed = read_module(&edit.into_bytes()).ok()?;
    (changed.language, changed.is_by_language) = (module.language, module.is_by_language);
    changed.plain_access_scope = module.plain_access_scope;
    if module.is_by_language && module.language == Some(ShaderLanguage::Wgsl) {
        changed.weaken_exchanges();
    }
    Some(changed)
}

/// Inserts what compilers emit for the barrier of [`ShaderLanguage::control_barrier`].
fn insert_barrier(
    edit: &mut ModuleEdit<'_>,
    module: &SpirvModule,
    at: usize,
    class: StorageClass,
) -> Option<()> {
    let language = module.language.unwrap_or(ShaderLanguage::Glsl);
    if language == ShaderLanguage::OpenClC && class == StorageClass::Buffer {
        let buffers = module.variables.iter().filter(|(_, known)| known.class == Class::StorageBuffer);
        let buffers: BTreeSet<u32> = buffers.map(|(id, _)| *id).collect();
        // Some may be coherent already.
        buffers.into_iter().for_each(|id| _ = edit.make_coherent(id));
    }
    if language != ShaderLanguage::Glsl || class == StorageClass::Workgroup {
        return edit.insert_control_barrier(at, Scope::Workgroup, &[class]);
    }
    edit.insert_memory_barrier(at, &[class])?;
    edit.insert_control_barrier(at, Scope::Workgroup, &[StorageClass::Workgroup])?;
    edit.insert_memory_barrier(at, &[class])
}
