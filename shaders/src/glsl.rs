//! Tests in the GLSL450 memory model: which tests coherent variables can express, and their meaning.
//!
//! Without the Vulkan memory model, an access has no scope. Coherent variables are available to and visible
//! from the queue family instance, which is also the meaning of Device scope (section on scopes in Vulkan's
//! shaders chapter). Workgroup memory is coherent within its workgroup.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{Access, LocationId, MemoryAccess, MemoryPlace, Scope, Semantics, StorageClass, Test};

use crate::rules::Rule;

/// Returns the test that a GLSL450 module executes, in the Vulkan memory model.
pub(crate) fn effective_test(test: &Test) -> Result<Test, Rule> {
    let mut effective = test.clone();
    // True if the plain accesses of a location are coherent.
    let mut coherent: Vec<Option<bool>> = vec![None; test.locations.len()];
    let mut agree = |location: LocationId, is: bool| {
        let known = coherent.get_mut(usize::from(location.0)).map(|slot| *slot.get_or_insert(is));
        if known.is_some_and(|known| known != is) { Err(Rule::GlslMixed) } else { Ok(()) }
    };
    let instructions = effective.threads.iter_mut().flat_map(|thread| &mut thread.instructions);
    for kind in instructions.map(|instruction| &mut instruction.kind) {
        if let Some(MemoryAccess { place: MemoryPlace { location, class, .. }, strength, .. }) =
            kind.access_mut()
        {
            match strength {
                Access::Private if *class == StorageClass::Workgroup => return Err(Rule::GlslPrivate),
                Access::Private => agree(*location, false)?,
                Access::NonPrivate => return Err(Rule::GlslNonPrivate),
                Access::Coherent { scope } => {
                    agree(*location, true)?;
                    *scope = coherent_scope(*class);
                }
                Access::Atomic { .. } => {}
            }
        }
        if let Some(scope) = kind.memory_scope_mut() {
            *scope = widen_scope(*scope);
        }
        kind.semantics().try_for_each(check_no_domain_operations)?;
    }
    Ok(effective)
}

/// Returns the scope of a coherent access.
pub(crate) fn coherent_scope(class: StorageClass) -> Scope {
    if class == StorageClass::Workgroup { Scope::Workgroup } else { Scope::QueueFamily }
}

/// Returns the meaning of a scope: Device scope is queue-family scope.
pub(crate) fn widen_scope(scope: Scope) -> Scope {
    if scope == Scope::Device { Scope::QueueFamily } else { scope }
}

fn check_no_domain_operations(semantics: Semantics) -> Result<(), Rule> {
    if semantics.make_available || semantics.make_visible { Err(Rule::GlslDomains) } else { Ok(()) }
}

/// Returns true if the plain accesses of a location are coherent.
pub(crate) fn is_coherent(test: &Test, location: LocationId) -> bool {
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions
        .filter_map(|instruction| instruction.kind.access())
        .any(|access| access.place.location == location && matches!(access.strength, Access::Coherent { .. }))
}
