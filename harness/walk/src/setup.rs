//! The initial state of a walk: the objects of a dispatch and their contents.

mod objects;

use std::collections::BTreeSet;

use litmus::{Order, Scope};
use rspirv::spirv::StorageClass;
use rustc_hash::FxHashMap;
use spirv_reader::{
    BarrierPart, MemoryEffect, ModuleEntryPoint, Specialized, SpirvConstant, SpirvModule, SpirvOperation,
    SpirvType, memory_class,
};

use super::state::{Interpreter, WalkSetup};
use entry_point::dataflow::find_loops;
use entry_point::input_place::{AssumedInput, InputPlace};
use entry_point::interlock::InterlockExecutionMode;
use entry_point::launch::{LaunchParameters, reflected_push_constants, running_workgroups};
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{AnalysisOptions, Problem, Refusal, launch, malformed, unsupported};

use super::happens_before::{CLASSES, ClassMap};
use super::influence::InputInfluence;
use super::launch_taint::LaunchTaint;
use super::memory::MemoryObject;
use super::program::DecodedProgram;
use super::race_check::DefinedCollisions;
use super::slots::GLOBAL_TAG;
use objects::ObjectBuilder;

use super::value::{ConcreteValue, Taint, input_taint};

/// Upper bound on the invocations of a grid.
pub const MAX_INVOCATIONS: u64 = 1 << 26;
/// Upper bound on the invocations of a workgroup.
const MAX_WORKGROUP_SIZE: u64 = 1 << 12;

/// The note if no push constants are given.
const ZERO_PUSH_CONSTANTS: &str = "push constants are not given: zeros assumed";

/// Builds the interpreter of a kernel and passes it to `then`.
pub(super) fn with_interpreter<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    entry: &ModuleEntryPoint,
    then: impl FnOnce(&Interpreter<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let (function, stage) = (entry.function, entry.shader_stage());
    launch::check_stage(module, stage, options.grid)?;
    let launch = LaunchParameters::new(module, options, function)?;
    let LaunchParameters { local_size, grid, config, .. } = launch;
    let (by_id, by_result) = (&launch.values_by_spec_id, &launch.values_by_result);
    let specialized = Specialized::new(module, by_id, by_result, Some(local_size))?;
    let mut annotated_values = FxHashMap::default();
    for (variable, declared) in &module.variables {
        if let Some(initial) = launch.inputs.get(variable) {
            let scalars = specialized.initial_scalars(initial, declared.ty);
            annotated_values.insert(*variable, scalars?);
        }
    }
    let mut push = options.push.clone();
    for (offset, number) in reflected_push_constants(&specialized, grid, local_size) {
        push.extend((offset..).zip((number as u32).to_le_bytes()));
    }
    let loops = find_loops(module);
    let program = DecodedProgram::new(&specialized, &loops, options.has_exact_floats)?;
    let running = running_workgroups(options, stage, grid)?;
    let size = checked_workgroup_size(local_size, grid, running.len())?;
    let subgroup_size = match options.subgroup_size.or(config.map(|config| config[0])) {
        _ if !stage.has_workgroups() => 1,
        Some(subgroup_size) => subgroup_size.clamp(1, 128),
        // Without a given size, a workgroup is one subgroup, as far as a subgroup can hold it.
        None => size.clamp(1, 128),
    };
    let Some(entry) = program.by_id.get(&function).copied() else {
        return Err(malformed("the entry point is not a function").into());
    };
    let mut builder = ObjectBuilder {
        options,
        program: &program,
        annotated_values: &annotated_values,
        push: &push,
        is_annotated: launch.is_annotated,
        objects: Vec::new(),
        descriptors: FxHashMap::default(),
        bytes: 0,
        notes: BTreeSet::new(),
    };
    let mut globals = program.globals.clone();
    let (of_workgroup, of_invocation) = builder.build_variables(&mut globals)?;
    builder.build_addresses(&globals)?;
    let (mut objects, descriptors, mut notes) = (builder.objects, builder.descriptors, builder.notes);
    taint_assumed_inputs(&specialized, options, &mut objects);
    taint_assumed_constants(&program, &options.assumed, &mut globals);
    if !options.assumed.is_empty() {
        notes.remove(ZERO_PUSH_CONSTANTS);
    }
    let setup = WalkSetup {
        grid,
        running_workgroups: running,
        annotated_values,
        stage,
        stage_inputs: options.stage_inputs.clone(),
        local_size,
        sections: InterlockExecutionMode::from_execution_modes(module.execution_modes(function)),
        subgroup_size,
        subgroups: size.div_ceil(subgroup_size),
        function: entry,
        workgroup_variables: of_workgroup,
        private_variables: of_invocation,
        collisions: DefinedCollisions {
            of_loads: module.defines_collisions(),
            of_stores: module.defines_collisions(),
            of_equal_stores: false,
            of_lanes: module.orders_lanes(),
        },
        has_fine_ordering: has_fine_ordering(module, &specialized),
        has_only_workgroup_barriers: has_only_workgroup_barriers(module, &specialized),
        has_mixed_visibility: has_mixed_visibility(module, &specialized),
        ray_queries: (options.ray_queries.unwrap_or_default(), ray_query_taint(&options.assumed)),
        launch_taint: LaunchTaint::from_inputs(options.assumed.iter().map(AssumedInput::launch_part)),
        has_exact_floats: options.has_exact_floats,
        deadline: options.deadline.clone(),
    };
    let influence = InputInfluence::for_inputs(&options.assumed);
    then(&Interpreter::new(&setup, &program, globals, objects, descriptors, influence, notes))
}

/// Returns the number of invocations of a workgroup, if it and the grid are within the bounds.
///
/// `running` is the number of workgroups that run; 0 for all.
fn checked_workgroup_size(local_size: [u32; 3], grid: [u32; 3], running: usize) -> Result<u32, Problem> {
    let each: u64 = local_size.iter().map(|n| u64::from(*n)).product();
    let all = match running {
        0 => grid.iter().fold(each, |all, n| all.saturating_mul(u64::from(*n))),
        count => each.saturating_mul(count as u64),
    };
    if each > MAX_WORKGROUP_SIZE {
        return Err(Problem::Invocations { bound: MAX_WORKGROUP_SIZE as usize, one_workgroup: true });
    }
    if all > MAX_INVOCATIONS {
        return Err(Problem::Invocations { bound: MAX_INVOCATIONS as usize, one_workgroup: false });
    }
    Ok(each as u32)
}

/// Marks the bytes and lengths of assumed inputs with their taint.
fn taint_assumed_inputs(
    specialized: &Specialized<'_>,
    options: &AnalysisOptions,
    objects: &mut [MemoryObject],
) {
    let (module, assumed) = (specialized.module, &options.assumed[..]);
    for object in objects.iter_mut().filter(|object| object.variable != 0) {
        let decorations = module.decorations_of(object.variable);
        let binding = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        let pushed = module
            .variables
            .get(&object.variable)
            .is_some_and(|variable| variable.class == StorageClass::PushConstant);
        let mut rest = 0;
        for (index, input) in assumed.iter().enumerate().filter(|(_, input)| !input.is_in_address(assumed)) {
            let taint = input_taint(index);
            match input.place {
                InputPlace::Push(offset, bytes) if pushed => object.add_taint(offset, bytes.into(), taint),
                InputPlace::Scalar(of, offset, bytes) if of == binding && !pushed => {
                    object.add_taint(offset, bytes.into(), taint);
                }
                InputPlace::Contents(of) if of == binding && !pushed => rest = taint,
                InputPlace::Length(of) if of == binding && !pushed => object.length_taint = taint,
                InputPlace::Image(of) if of == binding && !pushed && object.texels.is_some() => {
                    (rest, object.length_taint) = (taint, taint);
                }
                _ => {}
            }
        }
        // The contents are all bytes that no separate scalar covers.
        if rest != 0 {
            object.taint.resize(object.bytes.len(), 0);
            object.taint.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = rest);
            for (offset, bytes) in options.given_members.get(&binding).into_iter().flatten() {
                let (first, bytes) = (*offset as usize, *bytes as usize);
                object.taint.get_mut(first..first + bytes).into_iter().for_each(|given| given.fill(0));
            }
        }
    }
}

/// Marks specialization constants with their default values, and what is computed from them.
fn taint_assumed_constants(
    program: &DecodedProgram<'_>,
    assumed: &[AssumedInput],
    globals: &mut [ConcreteValue],
) {
    let module = program.module;
    let mut taints: FxHashMap<u32, Taint> = FxHashMap::default();
    // Constants are declared before their uses, which is not the order of their ids.
    let mut ids: Vec<u32> = module.constants.keys().copied().collect();
    ids.sort_unstable();
    for id in &ids {
        let number = module.decorations_of(*id).specialization;
        let of = |input: &AssumedInput| Some(&input.place) == number.map(InputPlace::Constant).as_ref();
        if let Some(index) = assumed.iter().position(of) {
            taints.insert(*id, input_taint(index));
        }
    }
    if taints.is_empty() {
        return;
    }
    loop {
        let before = taints.len();
        for id in &ids {
            if let Some((_, SpirvConstant::Composite(parts) | SpirvConstant::Operation(_, parts))) =
                module.constants.get(id)
                && !taints.contains_key(id)
            {
                let all = parts.iter().filter_map(|part| taints.get(part)).fold(0, |all, one| all | one);
                if all != 0 {
                    taints.insert(*id, all);
                }
            }
        }
        if taints.len() == before {
            break;
        }
    }
    for (id, taint) in ids.iter().filter_map(|id| Some((*id, *taints.get(id)?))) {
        for slot in program.slots_of(id).as_slice() {
            if let Some(value) =
                globals.get_mut((slot & !GLOBAL_TAG) as usize).filter(|_| slot & GLOBAL_TAG != 0)
            {
                *value = value.clone().with_taint(taint);
            }
        }
    }
}

/// Returns the refusal for annotated modules with an unspecified input: a walk needs one concrete value.
fn missing_input(module: &SpirvModule, variable: u32) -> Problem {
    unsupported(format!("`%{}` without @Input, which a grid needs", module.display_name(variable)))
}

/// Returns true if anything but workgroup control barriers orders invocations.
fn has_fine_ordering(module: &SpirvModule, specialized: &Specialized<'_>) -> bool {
    let code = module.functions.values().flat_map(|function| &function.code);
    let mut atomics = false;
    let mut wide = false;
    for operation in code.map(|instruction| module.operation(instruction)) {
        let relaxed = |id: u32| {
            let semantics =
                specialized.constant_number(id).and_then(|number| semantics_from_number(number).ok());
            semantics.is_some_and(|of| of.order == Order::Relaxed)
        };
        let scope_of = |id: u32| constant_scope(module, specialized, id);
        match operation.memory_effect() {
            MemoryEffect::Interlock => return true,
            MemoryEffect::Barrier { scope, .. } => {
                // Not a barrier of the whole workgroup in its own domain, so barrier epochs do not
                // describe it.
                let SpirvOperation::ControlBarrier { part: BarrierPart::Whole, execution, .. } = operation
                else {
                    return true;
                };
                if scope_of(execution) != Some(Scope::Workgroup) || scope_of(scope) == Some(Scope::Subgroup) {
                    return true;
                }
                // Such a barrier is also a memory barrier of that scope: relaxed atomics around it
                // synchronize workgroups.
                wide |= scope_of(scope) != Some(Scope::Workgroup);
            }
            MemoryEffect::Atomic(_) => {
                atomics = true;
                if !operation.semantics_ids().all(relaxed) {
                    return true;
                }
            }
            MemoryEffect::None
            | MemoryEffect::Access(_)
            | MemoryEffect::Texel { .. }
            | MemoryEffect::Unknown => {}
        }
    }
    atomics && wide
}

/// Returns true if invocations wait for each other only at control barriers of the workgroup.
fn has_only_workgroup_barriers(module: &SpirvModule, specialized: &Specialized<'_>) -> bool {
    let mut code = module.functions.values().flat_map(|function| &function.code);
    code.all(|instruction| match module.operation(instruction) {
        SpirvOperation::ControlBarrier { part, execution, .. } => {
            part == BarrierPart::Whole
                && constant_scope(module, specialized, execution) == Some(Scope::Workgroup)
        }
        SpirvOperation::Subgroup(_) | SpirvOperation::BeginInterlock => false,
        _ => true,
    })
}

fn constant_scope(module: &SpirvModule, specialized: &Specialized<'_>, id: u32) -> Option<Scope> {
    scope_from_number(specialized.constant_number(id)?, module.uses_vulkan_model).ok()
}

/// Returns true if reads of one class differ in how far their own visibility operation reaches.
fn has_mixed_visibility(module: &SpirvModule, specialized: &Specialized<'_>) -> bool {
    let mut reach: ClassMap<BTreeSet<Scope>> = ClassMap::default();
    if !module.uses_vulkan_model {
        // Coherent and workgroup memory is visible as far as it is shared.
        let scopes = [Some(Scope::Device), module.plain_access_scope];
        CLASSES.iter().for_each(|class| {
            reach[class].extend(scopes.iter().flatten().map(|scope| effective_scope(class, *scope)));
        });
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let scope_of = |id: u32| constant_scope(module, specialized, id);
            let (pointer, scope) = match module.operation(instruction) {
                SpirvOperation::Load { pointer, memory }
                    if module.uses_vulkan_model && (memory.non_private || module.is_by_language) =>
                {
                    let implied = module.plain_access_scope.or(Some(Scope::Invocation));
                    (pointer, memory.visible.map_or(implied, scope_of))
                }
                SpirvOperation::Atomic(access) => (access.pointer, scope_of(access.scope)),
                _ => continue,
            };
            let of = function.types.get(&pointer).or_else(|| module.variable_types.get(&pointer));
            let class = match of.and_then(|ty| module.types.get(ty)) {
                Some(SpirvType::Pointer { class, .. }) => memory_class(*class),
                _ => None,
            };
            let class = class.unwrap_or(litmus::StorageClass::Buffer);
            reach[class].extend(scope.map(|scope| effective_scope(class, scope)));
        }
    }
    reach.0.iter().any(|reach| reach.len() > 1)
}

/// Limits a scope to the extent in which memory of a class is shared.
fn effective_scope(class: litmus::StorageClass, scope: Scope) -> Scope {
    match class {
        _ if scope.is_within_workgroup() => scope,
        litmus::StorageClass::Workgroup => Scope::Workgroup,
        litmus::StorageClass::Buffer | litmus::StorageClass::Image | litmus::StorageClass::Output => {
            Scope::Device
        }
    }
}

/// Returns the taint of assumed results of ray queries; 0 if there are none.
fn ray_query_taint(assumed: &[AssumedInput]) -> Taint {
    let index = assumed.iter().position(|input| input.place == InputPlace::RayQueries);
    index.map_or(0, input_taint)
}
