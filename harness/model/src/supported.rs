//! The features of a test that not every model defines, and the tests that a model refuses.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Dialect, Flow, InstructionKind, LocationId, MemoryAccess, MemoryPlace, Performer, Scope, StorageClass,
    Test, ThreadPlace,
};

use crate::cells::Extent;
use crate::skeleton::{ExecutionSemantics, MAX_EVENTS, MAX_QUORUM_BARRIERS, MAX_THREADS};
use crate::system::{self, TestFeatures};
use crate::{PredictError, wgsl};

/// Refuses tests that the engine cannot execute or that use features the model does not define.
pub(crate) fn check_supported(test: &Test, semantic: ExecutionSemantics) -> Result<(), PredictError> {
    if test.threads.len() > MAX_THREADS {
        return Err(PredictError::TooManyThreads { threads: test.threads.len(), bound: MAX_THREADS });
    }
    let instructions: usize = test.threads.iter().map(|thread| thread.instructions.len()).sum();
    // A path may skip instructions, so that only far too many are refused here.
    if instructions > 8 * MAX_EVENTS {
        return Err(PredictError::TooManyEvents { events: instructions, bound: MAX_EVENTS });
    }
    let refuse = |what: &str| Err(PredictError::NotAvailable { what: what.to_owned() });
    if test.has_undefined_locations() && semantic.has_initial_write_per_name {
        return refuse("undefined initial values under this model");
    }
    if test.has_sequential_operations() && !semantic.has_sequential_orders {
        return refuse("sequentially consistent order under this model");
    }
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    let has_quorum = |kind: &InstructionKind| matches!(kind, InstructionKind::ControlBarrier(barrier) if barrier.quorum.is_some());
    if instructions.filter(|instruction| has_quorum(&instruction.kind)).count() > MAX_QUORUM_BARRIERS {
        return refuse("more than 20 named barriers with a quorum");
    }
    let mut uses_extension = false;
    for thread in &test.threads {
        let is_host = thread.place == ThreadPlace::Host;
        if is_host && !semantic.has_full_language {
            return refuse("host threads under this model");
        }
        uses_extension |= is_host;
        let cooperative = thread
            .instructions
            .iter()
            .any(|i| i.kind.access().is_some_and(|access| access.performer == Performer::Cooperative));
        if cooperative && !semantic.has_full_language {
            return refuse("cooperative accesses under this model");
        }
        for instruction in &thread.instructions {
            let kind = &instruction.kind;
            // The performing invocation follows the control flow of the thread.
            if cooperative && !is_uniform_in_subgroup(kind) {
                return refuse("cooperative accesses in a thread that branches, calls, or names a quorum");
            }
            let extension = required_extension(test, kind);
            uses_extension |= extension.is_some();
            if let Some(what) = wgsl::refusal_reason(kind).filter(|_| semantic.is_wgsl) {
                return refuse(what);
            }
            if let Some(what) = extension.filter(|_| !semantic.has_full_language) {
                return refuse(what.refusal_reason);
            }
            for scope in instruction_scopes(kind) {
                match scope {
                    Scope::CrossDevice if test.dialect != Dialect::Hsa && !is_host => {
                        return refuse("cross-device scope in a shader");
                    }
                    Scope::ShaderCall | Scope::FragmentInterlock if !semantic.has_full_language => {
                        return refuse("scopes of shader calls and interlocked sections under this model");
                    }
                    Scope::Invocation
                    | Scope::Subgroup
                    | Scope::Workgroup
                    | Scope::ShaderCall
                    | Scope::FragmentInterlock
                    | Scope::QueueFamily
                    | Scope::Device
                    | Scope::CrossDevice => {}
                }
            }
        }
    }
    if semantic.has_full_language {
        check_one_class_per_name(test)?;
    }
    match uses_extension.then(|| system::refusal_reason(test)).flatten() {
        Some(what) => refuse(what),
        None => Ok(()),
    }
}

/// Refuses names that are accessed through two storage classes.
fn check_one_class_per_name(test: &Test) -> Result<(), PredictError> {
    let mut classes: Vec<(LocationId, StorageClass)> = Vec::new();
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        let Some(MemoryPlace { location, class, .. }) = instruction.kind.access().map(|access| access.place)
        else {
            continue;
        };
        let known = classes.iter().find(|(known, _)| *known == location);
        if known.is_none() {
            classes.push((location, class));
        } else if known.is_some_and(|(_, known)| *known != class) {
            let name = test.location(location).name.clone();
            return Err(PredictError::TwoStorageClasses { name, span: instruction.span });
        }
    }
    Ok(())
}

/// Returns true if another invocation of the subgroup that runs the same code executes the instruction
/// uniformly.
#[expect(clippy::wildcard_enum_match_arm, reason = "the caller refuses by name")]
fn is_uniform_in_subgroup(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Access(_) | InstructionKind::Fence { .. } | InstructionKind::Compute(_) => true,
        InstructionKind::Flow(flow) => matches!(flow, Flow::Label(_) | Flow::BranchIf { .. }),
        InstructionKind::System(operation) => operation.is_unmasked(),
        InstructionKind::ControlBarrier(barrier) => barrier.quorum.is_none(),
        // Instructions not known to be uniform are refused.
        _ => false,
    }
}

/// Returns true if the access covers neither a whole location nor a whole vector component.
fn is_partial(test: &Test, access: &MemoryAccess) -> bool {
    if access.is_vector() {
        access.scalar_accesses().any(|lane| !Extent::from_place(test, &lane.place).is_whole)
    } else {
        !Extent::from_place(test, &access.place).is_whole
    }
}

/// A feature that only models of the complete language support.
pub(crate) struct LanguageExtension {
    pub(crate) feature: TestFeatures,
    /// The text with which other models refuse it.
    pub(crate) refusal_reason: &'static str,
}

/// Returns the feature that an instruction needs beyond the common language.
pub(crate) fn required_extension(test: &Test, kind: &InstructionKind) -> Option<LanguageExtension> {
    let needs = |feature, refusal_reason| Some(LanguageExtension { feature, refusal_reason });
    match kind {
        InstructionKind::Access(access) if is_partial(test, access) => {
            needs(TestFeatures::PARTS, "accesses to a part of a location under this model")
        }
        InstructionKind::System(operation) if !operation.is_unmasked() => {
            needs(TestFeatures::HOSTS, "access masks and operations of the host under this model")
        }
        InstructionKind::ShaderCall(_) => needs(TestFeatures::CALLS, "shader calls under this model"),
        InstructionKind::Interlock(_) => {
            needs(TestFeatures::INTERLOCK, "interlocked sections under this model")
        }
        InstructionKind::SplitBarrier(_) => {
            needs(TestFeatures::SPLIT_BARRIERS, "split barriers under this model")
        }
        InstructionKind::Access(_)
        | InstructionKind::System(_)
        | InstructionKind::Fence { .. }
        | InstructionKind::ControlBarrier(_)
        | InstructionKind::Subgroup(_)
        | InstructionKind::Compute(_)
        | InstructionKind::Flow(_) => None,
    }
}

/// Returns the scopes of an instruction: its memory scope and its execution scope.
pub(crate) fn instruction_scopes(kind: &InstructionKind) -> impl Iterator<Item = Scope> {
    kind.memory_scope().into_iter().chain(kind.execution_scope())
}
