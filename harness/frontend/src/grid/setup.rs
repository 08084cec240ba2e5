//! The initial state of a walk: the objects of a dispatch and their contents.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::TexelFormat;
use litmus::{Order, Scope};
use rspirv::spirv::{Op, StorageClass};
use rustc_hash::FxHashMap;
use spirv_reader::{
    BarrierPart, MemoryEffect, SpirvConstant, SpirvModule, SpirvOperation, SpirvType, Stage, memory_class,
};

use super::state::{DescriptorArray, Interpreter, SHARED, TrialBudget, WalkSetup};
use crate::address::offset_in;
use crate::assumed::{address_input, ends_in_runtime_array};
use crate::contents::{TexelInput, default_image};
use crate::context::find_loops;
use crate::error::{ONE_WORKGROUP, Problem, Refusal, SourcePosition, malformed, unsupported};
use crate::input_place::{AssumedInput, InputPlace};
use crate::launch::{Launch, reflected, running_workgroups};
use crate::layout::Specialized;
use crate::options::{AnalysisOptions, DEFAULT_BYTES};
use crate::order::{scope_from_number, semantics_from_number};
use crate::section::Sections;
use crate::stage;

use super::happens_before::{CLASSES, ClassMap};
use super::image::{TEXEL, component_bytes, texel_count};
use super::influence::InputInfluence;
use super::launch_taint::LaunchTaint;
use super::memory::{ImageLayout, MAX_BYTES, MemoryObject, address_of_byte as address_of};
use super::program::DecodedProgram;
use super::slots::GLOBAL;
use super::type_layout::TypeLayout;
use super::value::{ConcretePointer, ConcreteValue, LOCAL, Taint, input_taint};

/// Upper bound on the invocations of a grid.
pub(crate) const MAX_INVOCATIONS: u64 = 1 << 20;
/// Upper bound on the invocations of a workgroup.
const MAX_WORKGROUP: u64 = 1 << 12;

/// The note if no push constants are given.
const NOTHING_PUSHED: &str = "push constants are not given: zeros assumed";

/// Assumed length of a runtime-sized descriptor array.
const ASSUMED_DESCRIPTORS: u64 = 16;

/// Builds the interpreter of a kernel and passes it to `then`.
pub(super) fn with_interpreter<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    (function, stage): (u32, Stage),
    then: impl FnOnce(&Interpreter<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    stage::check_stage(module, stage, options.grid)?;
    let Launch { inputs, by_id, by_result, local_size, grid, config, annotated } =
        Launch::new(module, options, function).map_err(nowhere)?;
    let specialized = Specialized::new(module, &by_id, &by_result, Some(local_size)).map_err(nowhere)?;
    let mut said = FxHashMap::default();
    for (variable, declared) in &module.variables {
        if let Some(initial) = inputs.get(variable) {
            let scalars = specialized.initial_scalars(initial, declared.ty);
            said.insert(*variable, scalars.map_err(|problem| nowhere(problem.into()))?);
        }
    }
    let mut push = options.push.clone();
    for (offset, number) in reflected(&specialized, grid, local_size) {
        push.extend((offset..).zip((number as u32).to_le_bytes()));
    }
    let loops = find_loops(module);
    let program = DecodedProgram::new(&specialized, &loops).map_err(nowhere)?;
    let each: u64 = local_size.iter().map(|n| u64::from(*n)).product();
    let running = running_workgroups(options, stage, grid).map_err(nowhere)?;
    let all = match running.len() {
        0 => grid.iter().fold(each, |all, n| all.saturating_mul(u64::from(*n))),
        count => each.saturating_mul(count as u64),
    };
    if all > MAX_INVOCATIONS || each > MAX_WORKGROUP {
        let bound = if each > MAX_WORKGROUP { MAX_WORKGROUP } else { MAX_INVOCATIONS };
        let what = if each > MAX_WORKGROUP { ONE_WORKGROUP } else { "invocations" };
        return Err(nowhere(Problem::Budget { what, bound: bound as usize }));
    }
    let subgroup_size = options.subgroup_size.or(config.map(|config| config[0]));
    // Without a given size, a workgroup is one subgroup, as far as a subgroup can hold it.
    let subgroup_size = subgroup_size.unwrap_or(each.clamp(1, 128) as u32).clamp(1, 128);
    let subgroup_size = if stage.has_workgroups() { subgroup_size } else { 1 };
    let Some(entry) = program.by_id.get(&function).copied() else {
        return Err(nowhere(malformed("the entry point is not a function")));
    };
    let mut building = ObjectBuilder {
        options,
        program: &program,
        said: &said,
        push: &push,
        annotated,
        objects: Vec::new(),
        descriptors: FxHashMap::default(),
        bytes: 0,
        notes: BTreeSet::new(),
    };
    let mut globals = program.globals.clone();
    let (of_workgroup, of_invocation) = building.build_variables(&mut globals).map_err(nowhere)?;
    building.build_addresses(&globals).map_err(nowhere)?;
    let (mut objects, descriptors, mut notes) = (building.objects, building.descriptors, building.notes);
    taint_assumed_inputs(&specialized, &options.assumed, &mut objects);
    taint_assumed_constants(&program, &options.assumed, &mut globals);
    if !options.assumed.is_empty() {
        notes.remove(NOTHING_PUSHED);
    }
    let influence = InputInfluence::of_inputs(&options.assumed);
    let setup = WalkSetup {
        grid,
        running,
        annotated_values: said,
        stage,
        given: options.stage_inputs.clone(),
        local_size,
        sections: Sections::of_modes(module.execution_modes(function)),
        subgroup_size,
        subgroups: (each as u32).div_ceil(subgroup_size),
        function: entry,
        workgroup_variables: of_workgroup,
        private_variables: of_invocation,
        has_fine_ordering: has_fine_ordering(module, &specialized),
        has_mixed_visibility: has_mixed_visibility(module, &specialized),
        ray_queries: (options.ray_queries.unwrap_or_default(), ray_taint(&options.assumed)),
        launch_taint: LaunchTaint::of_inputs(options.assumed.iter().map(AssumedInput::launch_part)),
        skip_race_checks: options.skip_race_checks,
        deadline: options.deadline.clone(),
    };
    let machine = Interpreter {
        setup: &setup,
        program: &program,
        globals,
        objects,
        descriptors,
        workgroups: FxHashMap::default(),
        pixels: BTreeMap::new(),
        releases: FxHashMap::default(),
        findings: Vec::new(),
        reported: BTreeSet::new(),
        spare_frames: Vec::new(),
        schedule_dependent: false,
        has_partial_subgroups: false,
        unordered_write: None,
        influence,
        notes,
        steps: 0,
        changes: 0,
        events: 0,
        accesses: 0,
        stores_same_value: false,
        spare_objects: Vec::new(),
        private_templates: Vec::new(),
        spin_reads: None,
        calls: Vec::new(),
        calls_by_site: FxHashMap::default(),
        rotation: 1,
        undefined_sources: Vec::new(),
        block_entries: vec![0; program.instruction_count()],
        is_single_invocation: all <= 1,
        largest_shadow: (0, 0),
        trial_budget: TrialBudget::default(),
    };
    then(&machine)
}

/// Marks the bytes and lengths of assumed inputs with their taint.
fn taint_assumed_inputs(
    specialized: &Specialized<'_>,
    assumed: &[AssumedInput],
    objects: &mut [MemoryObject],
) {
    let module = specialized.module;
    for object in objects.iter_mut().filter(|object| object.variable != 0) {
        let decorations = module.decorations_of(object.variable);
        let at = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        let pushed = module
            .variables
            .get(&object.variable)
            .is_some_and(|variable| variable.class == StorageClass::PushConstant);
        let mut rest = 0;
        for (index, input) in assumed.iter().enumerate().filter(|(_, input)| !input.is_in_address(assumed)) {
            let taint = input_taint(index);
            match input.place {
                InputPlace::Push(offset, bytes) if pushed => object.add_taint(offset, bytes.into(), taint),
                InputPlace::Scalar(of, offset, bytes) if of == at && !pushed => {
                    object.add_taint(offset, bytes.into(), taint);
                }
                InputPlace::Contents(of) if of == at && !pushed => rest = taint,
                InputPlace::Length(of) if of == at && !pushed => object.length_taint = taint,
                InputPlace::Image(of) if of == at && !pushed && object.texels.is_some() => {
                    (rest, object.length_taint) = (taint, taint);
                }
                _ => {}
            }
        }
        // The contents are all bytes that no separate scalar covers.
        if rest != 0 {
            object.taint.resize(object.bytes.len(), 0);
            object.taint.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = rest);
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
            if let Some(value) = globals.get_mut((slot & !GLOBAL) as usize).filter(|_| slot & GLOBAL != 0) {
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
        match operation.effect() {
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
                if !operation.semantics().all(relaxed) {
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

fn constant_scope(module: &SpirvModule, specialized: &Specialized<'_>, id: u32) -> Option<Scope> {
    scope_from_number(specialized.constant_number(id)?, module.vulkan).ok()
}

/// Returns true if reads of one class differ in how far their own visibility operation reaches.
fn has_mixed_visibility(module: &SpirvModule, specialized: &Specialized<'_>) -> bool {
    let mut reach: ClassMap<BTreeSet<Scope>> = ClassMap::default();
    if !module.vulkan {
        // Coherent and workgroup memory is visible as far as it is shared.
        CLASSES.iter().for_each(|class| reach[class].extend([effective_scope(class, Scope::Device)]));
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let scope_of = |id: u32| constant_scope(module, specialized, id);
            let (pointer, scope) = match module.operation(instruction) {
                SpirvOperation::Load { pointer, memory } if module.vulkan && memory.non_private => {
                    (pointer, memory.visible.map_or(Some(Scope::Invocation), scope_of))
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

/// Builder of the memory objects.
struct ObjectBuilder<'a> {
    options: &'a AnalysisOptions,
    program: &'a DecodedProgram<'a>,
    /// See [`WalkSetup::annotated_values`].
    said: &'a FxHashMap<u32, Vec<(u64, u32, u64)>>,
    /// Bytes of push constants by offset.
    push: &'a BTreeMap<u64, u8>,
    /// True if inputs are annotations, which leave no defaults.
    annotated: bool,
    objects: Vec<MemoryObject>,
    descriptors: FxHashMap<u32, DescriptorArray>,
    bytes: u64,
    notes: BTreeSet<String>,
}

impl ObjectBuilder<'_> {
    /// Builds the objects of all variables and stores their pointers in the globals. Returns the workgroup
    /// variables and the private variables.
    fn build_variables(&mut self, globals: &mut [ConcreteValue]) -> Result<(Vec<u32>, Vec<u32>), Problem> {
        let program = self.program;
        let (mut of_workgroup, mut of_invocation) = (Vec::new(), Vec::new());
        let mut by_binding: HashMap<(u32, u32, bool), u32> = HashMap::new();
        for (variable, slot) in &program.variables {
            let Some(declared) = program.module.variables.get(variable) else { continue };
            let number = match declared.class {
                // Blocks in workgroup memory alias each other (`WorkgroupMemoryExplicitLayoutKHR`).
                StorageClass::Workgroup
                    if program.module.decorations.get(&declared.ty).is_some_and(|known| known.block) =>
                {
                    let at = of_workgroup.iter().position(|known| {
                        let ty = program.module.variables.get(known).map_or(0, |known| known.ty);
                        program.module.decorations.get(&ty).is_some_and(|known| known.block)
                    });
                    let at = at.unwrap_or_else(|| {
                        of_workgroup.push(*variable);
                        of_workgroup.len() - 1
                    });
                    // The largest of them determines the object.
                    let size = |id: &u32| {
                        program.module.variables.get(id).map_or(0, |known| program.type_size(known.ty))
                    };
                    if size(variable) > size(&of_workgroup[at]) {
                        of_workgroup[at] = *variable;
                    }
                    SHARED | at as u32
                }
                StorageClass::Workgroup => {
                    of_workgroup.push(*variable);
                    SHARED | (of_workgroup.len() - 1) as u32
                }
                StorageClass::Private | StorageClass::Input | StorageClass::Output => {
                    of_invocation.push(*variable);
                    LOCAL | (of_invocation.len() - 1) as u32
                }
                StorageClass::PushConstant => {
                    let size = program.specialized.size_of(declared.ty)?;
                    if self.push.is_empty() && self.annotated && !self.said.contains_key(variable) {
                        return Err(missing_input(program.module, *variable));
                    }
                    if self.push.is_empty() && !self.annotated {
                        self.notes.insert(NOTHING_PUSHED.to_owned());
                    }
                    let mut bytes = vec![0; self.reserve_bytes(size)?];
                    for (at, byte) in self.push {
                        if let Some(place) = usize::try_from(*at).ok().and_then(|at| bytes.get_mut(at)) {
                            *place = *byte;
                        }
                    }
                    let mut object =
                        MemoryObject::new(*variable, program.module.display_name(*variable), None, bytes);
                    object.apply_annotations(self.said.get(variable));
                    self.push_object(object)
                }
                class => {
                    let decorations = program.module.decorations_of(*variable);
                    // A variable without a binding aliases no other, so it gets a key that no
                    // binding has.
                    let binding = decorations.binding.unwrap_or(u32::MAX - *variable);
                    let image = class == StorageClass::UniformConstant;
                    let key = (decorations.set.unwrap_or(0), binding, image);
                    // Variables of one binding alias: they name one object.
                    let found = match by_binding.get(&key) {
                        Some(found) => *found,
                        None => self.bound_object(*variable, declared.ty, class, (key.0, key.1))?,
                    };
                    by_binding.insert(key, found);
                    if let Some(object) = self.objects.get_mut(found as usize) {
                        object.coherent |= decorations.coherent || decorations.volatile;
                    }
                    found
                }
            };
            if let Some(place) = globals.get_mut(*slot) {
                *place = ConcreteValue::Pointer(ConcretePointer::to_object(number, declared.ty));
            }
        }
        Ok((of_workgroup, of_invocation))
    }

    fn reserve_bytes(&mut self, bytes: u64) -> Result<usize, Problem> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            return Err(Problem::Budget { what: "bytes of memory", bound: MAX_BYTES as usize });
        }
        Ok(bytes as usize)
    }

    fn push_object(&mut self, object: MemoryObject) -> u32 {
        self.objects.push(object);
        (self.objects.len() - 1) as u32
    }

    /// Returns the object at a binding.
    fn bound_object(
        &mut self,
        variable: u32,
        ty: u32,
        class: StorageClass,
        at: (u32, u32),
    ) -> Result<u32, Problem> {
        let program = self.program;
        let array = match program.type_layout(ty)? {
            TypeLayout::Array { element, length, .. } => {
                let part = program.type_layout(*element)?;
                let opaque = matches!(part, TypeLayout::Image | TypeLayout::Handle);
                let block = matches!(part, TypeLayout::Struct { .. })
                    && program.module.decorations.get(&ty).and_then(|known| known.stride).is_none();
                // An array of descriptors: of images or handles, or of blocks. An array with a
                // stride is data inside one buffer.
                (opaque || block).then_some((*element, length.unwrap_or(1).min(1 << 10)))
            }
            _ => None,
        };
        if let Some((element, length)) = array {
            let holder = self.push_object(MemoryObject::new(
                variable,
                program.module.display_name(variable),
                None,
                Vec::new(),
            ));
            let open = matches!(program.type_layout(ty)?, TypeLayout::Array { length: None, .. });
            let said = self.options.images.get(&at).map(|image| u64::from(image.levels));
            let length = if open { said.unwrap_or(ASSUMED_DESCRIPTORS) } else { length };
            let mut objects = Vec::new();
            for index in 0..length {
                objects.push(self.build_object(variable, element, class, at, Some(index as u32))?);
            }
            self.descriptors
                .insert(holder, DescriptorArray { ty, element, objects, assumed: open && said.is_none() });
            return Ok(holder);
        }
        self.build_object(variable, ty, class, at, None)
    }

    fn build_object(
        &mut self,
        variable: u32,
        ty: u32,
        class: StorageClass,
        at: (u32, u32),
        index: Option<u32>,
    ) -> Result<u32, Problem> {
        let program = self.program;
        let mut name = program.module.variable_name(variable, ty);
        if let Some(index) = index {
            name += &format!("[{index}]");
        }
        if matches!(program.type_layout(ty)?, TypeLayout::Image) {
            return self.build_image(variable, ty, at, index, name);
        }
        let block = program.module.decorations.get(&ty).is_some_and(|known| known.block);
        // A uniform block is read-only and cannot race. A `Uniform` without `Block` is a storage
        // buffer of older SPIR-V (`BufferBlock`).
        let shared = match class {
            StorageClass::StorageBuffer => Some(litmus::StorageClass::Buffer),
            StorageClass::Uniform if !block => Some(litmus::StorageClass::Buffer),
            _ => None,
        };
        // The largest of the variables of a descriptor determines the object.
        let mut size = program.specialized.size_of(ty)?;
        for other in program.module.variables_at(at).iter().filter(|_| index.is_none()) {
            let other = program.module.variables.get(other).map_or(0, |other| program.type_size(other.ty));
            size = size.max(other);
        }
        let said = self.said.get(&variable);
        let last =
            said.into_iter().flatten().map(|(offset, bytes, _)| offset.saturating_add((*bytes).into())).max();
        let assumed = |input: &AssumedInput| input.place == InputPlace::Length(at);
        let (bytes, given) = match self.options.buffers.get(&at) {
            Some(bytes) => (bytes.clone(), !self.options.assumed.iter().any(assumed)),
            None if self.annotated && said.is_none() => return Err(missing_input(program.module, variable)),
            None if self.annotated => (vec![0; self.reserve_bytes(size.max(last.unwrap_or(0)))?], true),
            None if ends_in_runtime_array(program.module, ty) => {
                (vec![0; DEFAULT_BYTES.max(size) as usize], false)
            }
            None => {
                let room = self.reserve_bytes(size)?;
                (vec![0; room], true)
            }
        };
        self.reserve_bytes(bytes.len() as u64)?;
        let sampler = self.options.samplers.get(&at).copied();
        let mut object = MemoryObject {
            has_known_length: given,
            sampler,
            ..MemoryObject::new(variable, name, shared, bytes)
        };
        object.apply_annotations(said);
        Ok(self.push_object(object))
    }

    fn build_image(
        &mut self,
        variable: u32,
        ty: u32,
        at: (u32, u32),
        index: Option<u32>,
        name: String,
    ) -> Result<u32, Problem> {
        let module = self.program.module;
        let mut handle = module.handles.get(&ty).cloned().unwrap_or_default();
        let sampled_with = matches!(module.types.get(&ty), Some(SpirvType::Handle(Op::TypeSampledImage)));
        if sampled_with {
            handle = handle.first().and_then(|image| module.handles.get(image)).cloned().unwrap_or_default();
        }
        let [_, dimension, _, arrayed, _, sampled, format, ..] = handle[..] else {
            return Err(malformed("an image whose type is not an image type"));
        };
        let said = self.options.images.get(&at);
        let assumed = default_image(dimension, arrayed != 0);
        let given = said.unwrap_or(&assumed);
        // An array of images is taken for the levels of one image, each half the size of the one
        // before.
        let halve = |size: u32| index.map_or(size, |index| (size >> index.min(31)).max(1));
        let texels = ImageLayout {
            size: if dimension == 0 {
                [halve(given.size[0]), if arrayed == 0 { 1 } else { given.size[1] }, 1]
            } else {
                [halve(given.size[0]), halve(given.size[1]), given.size[2]]
            },
            levels: if index.is_some() { 1 } else { given.levels.clamp(1, 16) },
            format: TexelFormat::of(format),
            // `Dim` of SPIR-V: 0 is 1D, 1 is 2D, 2 is 3D, 3 is Cube, 5 is Buffer.
            axes: match dimension {
                0 | 5 => 1 + (arrayed != 0) as usize,
                2 | 3 => 3,
                _ => 2 + (arrayed != 0) as usize,
            },
            layered: arrayed != 0,
            cube: dimension == 3,
            is_default: said.is_none(),
        };
        let count = texel_count(&texels);
        self.reserve_bytes(count.saturating_mul(TEXEL))?;
        let bytes = initial_texels(&given.texels, count, texels.format)
            .ok_or_else(|| unsupported("these image contents"))?;
        // Only storage images can be written; sampled images are read-only.
        let class = (sampled == 2).then_some(litmus::StorageClass::Image);
        let assumed = self.options.assumed.iter().any(|input| input.place == InputPlace::Image(at));
        let (given, sampler) = (said.is_some() && !assumed, self.options.samplers.get(&at).copied());
        let object = MemoryObject {
            texels: Some(texels),
            has_known_length: given,
            sampler,
            ..MemoryObject::new(variable, name, class, bytes)
        };
        Ok(self.push_object(object))
    }

    /// Builds the buffers that addresses point to, and stores the addresses.
    fn build_addresses(&mut self, globals: &[ConcreteValue]) -> Result<(), Problem> {
        let mut named: HashMap<&str, u32> = HashMap::new();
        let mut pushed = BTreeSet::new();
        let options = self.options;
        for address in &options.addresses {
            let number = match named.get(address.name.as_str()) {
                Some(number) => *number,
                None => {
                    self.reserve_bytes(address.bytes.len() as u64)?;
                    let class = Some(litmus::StorageClass::Buffer);
                    let object = MemoryObject::new(0, address.name.clone(), class, address.bytes.clone());
                    let input = address_input(&options.assumed, &address.at);
                    self.push_object(object.into_input(input.map(input_taint)))
                }
            };
            named.insert(&address.name, number);
            let value = address_of(number, 0);
            let mut placed = false;
            for (variable, slot) in &self.program.variables {
                let Some(ConcreteValue::Pointer(pointer)) = globals.get(*slot) else { continue };
                let Some(offset) = offset_in(self.program.specialized, *variable, &address.at) else {
                    continue;
                };
                if let Some(object) = self.objects.get_mut(pointer.object as usize) {
                    placed |= object.contains_range(offset, 8);
                    object.write_scalar(offset, 8, value, 0);
                    let declared = self.program.module.variables.get(variable);
                    if declared.is_some_and(|known| known.class == StorageClass::PushConstant) {
                        pushed.insert(offset);
                        // All push constants are addresses, so that none is missing.
                        if pushed.len() * 8 >= object.bytes.len() {
                            self.notes.remove(NOTHING_PUSHED);
                        }
                    }
                }
            }
            if !placed {
                return Err(Problem::Input(format!(
                    "`{}`: not a place that can hold an address",
                    address.at
                )));
            }
        }
        Ok(())
    }
}

/// Returns the initial texels as the format stores them; `None` for an unknown fill word.
pub(crate) fn initial_texels(given: &TexelInput, count: u64, format: Option<TexelFormat>) -> Option<Vec<u8>> {
    let mut bytes = given.to_bytes(count * TEXEL)?;
    let Some(format) = format else { return Some(bytes) };
    for texel in bytes.chunks_exact_mut(TEXEL as usize) {
        for (index, part) in texel.chunks_exact_mut(component_bytes(format) as usize).enumerate() {
            let (kept, _) = format.kept(index, little_endian(part));
            part.copy_from_slice(&kept.to_le_bytes()[..part.len()]);
        }
    }
    Some(bytes)
}

/// Decodes up to 8 little-endian bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Returns the taint of assumed results of ray queries; 0 if there are none.
fn ray_taint(assumed: &[AssumedInput]) -> Taint {
    let index = assumed.iter().position(|input| input.place == InputPlace::RayQueries);
    index.map_or(0, input_taint)
}
