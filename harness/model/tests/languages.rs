//! The models of other languages (PTX, OpenCL, AMDGPU, WGSL) compared with each other and with `vulkan`, on
//! the corpus.
//!
//! Compilers rely on these relations: if a program is race-free under the model of the source language, its
//! translation has only outcomes that this model allows. A test represents both programs, by the mappings in
//! the models.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::oracle::{UNLIMITED, shipped};
use litmus::{
    Access, ControlBarrier, Dialect, InstructionKind, LocationInit, Order, Prediction, Race, RmwOperation,
    Scope, Semantics, StorageClass, StorageClassSet, Test,
};
use model::{Model, PredictError, predict};

/// Returns native tests of the corpus and those of other languages, with their ids: one in `share` of each folder.
fn tests(share: usize) -> Vec<(String, Test)> {
    // A soak uses all of them.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { share };
    let entries = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests());
    let parsed = entries.map(|entry| (entry.id.clone(), litmus::parse(entry.text, &entry.id).unwrap()));
    let native =
        parsed.filter(|(_, test)| test.dialect == Dialect::Vulkan && !test.has_undefined_locations());
    native.enumerate().filter(|(number, _)| number % share == 0).map(|(_, test)| test).collect()
}

/// Returns `None` for a test that the model refuses.
fn predict_if_supported(test: &Test, model: &Model) -> Option<Prediction> {
    match predict(test, model, &UNLIMITED) {
        Ok(prediction) => Some(prediction),
        Err(PredictError::NotAvailable { .. } | PredictError::TwoStorageClasses { .. }) => None,
        Err(error) => panic!("{}: {error}", test.name),
    }
}

/// Returns an outcome that `target` allows and `source` forbids.
fn additional_outcome(source: &Prediction, target: &Prediction) -> Option<String> {
    let allowed = target.outcomes.iter().filter(|(_, predicted)| predicted.allowed);
    let forbidden = |outcome| source.outcomes.get(outcome).is_none_or(|predicted| !predicted.allowed);
    allowed
        .map(|(outcome, _)| outcome)
        .find(|outcome| forbidden(outcome))
        .map(|outcome| format!("{outcome:?}"))
}

/// A compiler's source and target, with the mapping of a test to the source program.
struct Translation {
    source: &'static str,
    target: &'static str,
    /// Returns `None` for a test that is not a program of the source.
    program: fn(&Test) -> Option<Test>,
    /// Tests whose translation has more outcomes.
    exceptions: &'static [&'static str],
}

/// An availability operation within a thread: other languages have no such API operations.
const API: &[&str] = &["avvis/WAW+avdevice-rel-acq", "ssw/WAW+ssw.avdevice-po-rel"];

/// Release sequences that continue with a store of the same thread, as in C11 and OpenCL, but not in Vulkan,
/// LLVM and C++20.
const OWN_STORES: &[&str] =
    &["rmw/MP+rel.rlx-acq", "model-only/opencl/RS+own-store", "model-only/ptx/MP+rel.then-rlx-acq"];

const TRANSLATIONS: &[Translation] = &[
    // As in NVIDIA's drivers.
    Translation { source: "vulkan", target: "ptx", program: unchanged_program, exceptions: &[] },
    // "The AMDGPU memory model is a special case of the Vulkan memory model."
    Translation { source: "vulkan", target: "amdgpu", program: unchanged_program, exceptions: API },
    // The mapping that the PTX paper proves for scoped C++, here for OpenCL.
    Translation { source: "opencl-3.1", target: "ptx", program: unchanged_program, exceptions: &[] },
    Translation { source: "opencl", target: "opencl-3.1", program: unchanged_program, exceptions: &[] },
    // As in clspv, and in LLVM.
    Translation { source: "opencl", target: "vulkan", program: opencl_program, exceptions: OWN_STORES },
    Translation { source: "opencl", target: "amdgpu", program: opencl_program, exceptions: OWN_STORES },
];

fn unchanged_program(test: &Test) -> Option<Test> {
    Some(test.clone())
}

/// Returns a test with the semantics of OpenCL's operations in Vulkan: an atomic orders the region of its
/// object, all orders include availability and visibility, barriers have workgroup scope, and no access is
/// private.
///
/// Returns `None` for tests of several dispatches and of aliases.
fn opencl_program(test: &Test) -> Option<Test> {
    let is_alias = |location: &litmus::Location| matches!(location.init, LocationInit::AliasOf(_));
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    let is_of_api =
        instructions.into_iter().any(|instruction| matches!(instruction.kind, InstructionKind::System(_)));
    if !test.system_sync.is_empty() || is_of_api || test.locations.iter().any(is_alias) {
        return None;
    }
    let mut program = test.clone();
    for instruction in program.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
        match &mut instruction.kind {
            InstructionKind::Fence { semantics, .. } => publish(semantics, semantics.classes),
            InstructionKind::ControlBarrier(barrier) => {
                barrier.memory_scope = barrier.memory_scope.max(Scope::Workgroup);
                if let Some(semantics) = &mut barrier.semantics {
                    publish(semantics, semantics.classes);
                }
            }
            kind => {
                if let Some(access) = kind.access_mut() {
                    let classes = StorageClassSet::EMPTY.with(access.place.class);
                    match &mut access.strength {
                        Access::Atomic { semantics, .. } => publish(semantics, classes),
                        plain => *plain = Access::NonPrivate,
                    }
                }
            }
        }
    }
    Some(program)
}

/// Adds the regions of some storage classes, availability and visibility to semantics with an order.
fn publish(semantics: &mut Semantics, classes: StorageClassSet) {
    if semantics.order == Order::Relaxed {
        return;
    }
    let global = StorageClass::ALL.into_iter().filter(|class| *class != StorageClass::Workgroup);
    semantics.classes = match global.clone().any(|class| classes.contains(class)) {
        true => global.fold(classes, StorageClassSet::with),
        false => classes,
    };
    semantics.make_available = semantics.order.releases();
    semantics.make_visible = semantics.order.acquires();
}

#[test]
fn race_free_programs_keep_their_outcomes_in_translation() {
    let tests = tests(3);
    let mut wrong = Vec::new();
    for Translation { source, target, program, exceptions } in TRANSLATIONS {
        let (source, target) = (shipped(source), shipped(target));
        let mut compared = 0;
        for (id, test) in &tests {
            let Some(test) = program(test) else { continue };
            let Some(first) = predict_if_supported(&test, &source).filter(|first| first.race == Race::Free)
            else {
                continue;
            };
            let Some(second) = predict_if_supported(&test, &target) else { continue };
            compared += 1;
            let additional = additional_outcome(&first, &second);
            if additional.is_some() != exceptions.contains(&id.as_str()) {
                wrong.push(format!("{id} from {} to {}: {additional:?}", source.name(), target.name()));
            }
        }
        println!("{} to {}: {compared} race-free tests", source.name(), target.name());
        assert!(compared >= 100, "{} to {}: {compared} tests", source.name(), target.name());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No model forbids an outcome that an interleaving of a race-free program has.
#[test]
fn sequentially_consistent_outcomes_are_allowed() {
    let sc = shipped("sc");
    let tests: Vec<(String, Test, Prediction)> = tests(4)
        .into_iter()
        .filter_map(|(id, test)| predict_if_supported(&test, &sc).map(|interleaved| (id, test, interleaved)))
        .collect();
    for name in ["ptx", "opencl", "opencl-3.1", "amdgpu", "wgsl"] {
        let model = shipped(name);
        let mut compared = 0;
        for (id, test, interleaved) in &tests {
            let Some(prediction) =
                predict_if_supported(test, &model).filter(|prediction| prediction.race != Race::Racy)
            else {
                continue;
            };
            compared += 1;
            let missing = additional_outcome(&prediction, interleaved);
            assert!(missing.is_none(), "{id} under {name} forbids {missing:?}");
        }
        println!("{name}: {compared} tests");
        assert!(compared >= 20, "{name}: {compared} tests");
    }
}

/// Returns the WGSL program nearest to a test, in the words of the section "Memory Model" of WGSL's specification.
pub(crate) fn as_wgsl(test: &Test) -> Test {
    let mut program = test.clone();
    for thread in &mut program.threads {
        for instruction in &mut thread.instructions {
            match &mut instruction.kind {
                InstructionKind::Fence { scope, semantics } => {
                    // A barrier without other threads: it orders the same accesses as the memory barrier,
                    // within the workgroup.
                    (*scope, *semantics) = (Scope::Workgroup, Semantics::RELAXED);
                }
                InstructionKind::ControlBarrier(barrier) => *barrier = wgsl_barrier(barrier),
                kind => {
                    if let Some(access) = kind.access_mut() {
                        let scope = match access.place.class {
                            StorageClass::Buffer => Scope::QueueFamily,
                            StorageClass::Workgroup | StorageClass::Image | StorageClass::Output => {
                                Scope::Workgroup
                            }
                        };
                        access.strength = match access.strength {
                            Access::Atomic { .. } => Access::Atomic { scope, semantics: Semantics::RELAXED },
                            Access::Private | Access::NonPrivate | Access::Coherent { .. } => {
                                Access::Coherent { scope: Scope::Workgroup }
                            }
                        };
                        if let litmus::AccessKind::Rmw {
                            operation: RmwOperation::CompareExchange { unequal, .. },
                            ..
                        } = &mut access.kind
                        {
                            *unequal = Semantics::RELAXED;
                        }
                    }
                }
            }
        }
        thread.instructions.retain(|instruction| !matches!(instruction.kind, InstructionKind::Fence { .. }));
    }
    program
}

fn wgsl_barrier(barrier: &ControlBarrier) -> ControlBarrier {
    let classes = barrier.semantics.map_or(StorageClassSet::EMPTY, |semantics| semantics.classes);
    let named =
        if classes == StorageClassSet::EMPTY { classes.with(StorageClass::Workgroup) } else { classes };
    let semantics = Semantics { order: Order::AcquireRelease, classes: named, ..Semantics::RELAXED };
    ControlBarrier {
        execution_scope: Scope::Workgroup,
        memory_scope: Scope::Workgroup,
        semantics: Some(semantics),
        ..barrier.clone()
    }
}

/// A WGSL program has the same verdict as the Vulkan program to which WGSL's specification maps it.
#[test]
fn wgsl_is_vulkan_on_mapped_programs() {
    let (wgsl, vulkan) = (shipped("wgsl"), shipped("vulkan"));
    let mut compared = 0;
    let mut racy = 0;
    for (id, test) in tests(3) {
        let mapped = as_wgsl(&test);
        let Some(expected) = predict_if_supported(&mapped, &vulkan) else { continue };
        // The model replaces scopes and accesses; the program with the original ones must have the same
        // verdict.
        for program in [with_original_accesses(&test, &mapped), mapped] {
            let Some(answer) = predict_if_supported(&program, &wgsl) else { continue };
            compared += 1;
            racy += usize::from(answer.race == Race::Racy);
            let allowed = |prediction: &Prediction| -> Vec<String> {
                let outcomes = prediction.outcomes.iter().filter(|(_, predicted)| predicted.allowed);
                outcomes.map(|(outcome, _)| format!("{outcome:?}")).collect()
            };
            assert_eq!((answer.race, allowed(&answer)), (expected.race, allowed(&expected)), "{id}");
        }
    }
    println!("{compared} programs, {racy} racy");
    assert!(compared >= 200 && racy >= 50, "{compared} programs, {racy} racy");
}

/// Returns a WGSL program with the scopes and the plain accesses of the original test.
fn with_original_accesses(test: &Test, mapped: &Test) -> Test {
    let mut program = mapped.clone();
    for (thread, original) in program.threads.iter_mut().zip(&test.threads) {
        let fences = |kind: &InstructionKind| matches!(kind, InstructionKind::Fence { .. });
        let originals = original.instructions.iter().filter(|instruction| !fences(&instruction.kind));
        for (instruction, original) in thread.instructions.iter_mut().zip(originals) {
            let (Some(access), Some(before)) = (instruction.kind.access_mut(), original.kind.access()) else {
                continue;
            };
            access.strength = match before.strength {
                Access::Atomic { scope, .. } => Access::Atomic { scope, semantics: Semantics::RELAXED },
                plain => plain,
            };
        }
    }
    program
}
