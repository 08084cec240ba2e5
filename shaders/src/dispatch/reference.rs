//! The references of a test as variables, and their access targets in a round.

use litmus::{Access, LocationId, Observable, StorageClass, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Decoration, MemoryAccess, MemorySemantics, Op, Word};

use super::DispatchEmitter;
use super::rendezvous::InvocationStart;
use crate::contract::{IMAGE_WIDTH, Parameter, WordArithmetic, unit_index};
use crate::fixed::ResultPlacement;
use crate::glsl;
use crate::kernel::{Binding, ImageBinding, ResultSlot};
use crate::memory::{
    AccessTarget, ElementType, ReferenceMemory, ReferencePath, image_type, pointer_storage_class,
};
use crate::rules::Rule;
use crate::stress;
use crate::variant::{ImageForm, MemoryModel, PointerForm, ReferenceAliasing, WorkgroupInitialization};

/// Workgroup memory that is initialized in each round.
#[derive(Clone, Copy)]
pub(super) struct InitializedStorage {
    /// Index of the storage.
    pub storage: u32,
    /// The path for its initial and its final value.
    pub path: ReferencePath,
    /// The thread whose invocation writes and reads them: the first one of its workgroup.
    pub thread: ThreadId,
}

/// A storage buffer whose number of elements is part of the receipt.
#[derive(Clone, Copy)]
pub(super) struct BoundBuffer {
    pub variable: Word,
    pub binding: u32,
    /// Bytes of an element.
    pub stride: u32,
}

/// A path with its base variable.
#[derive(Clone, Copy)]
pub(super) struct DeclaredPath {
    path: ReferencePath,
    variable: Word,
}

impl DispatchEmitter<'_> {
    /// Declares the buffers in the order of the contract, then images.
    pub(super) fn declare_bindings(&mut self) -> Result<(), Rule> {
        let paths = self.uses.paths.clone();
        let variant = self.config.variant;
        let mut buffers: Vec<(LocationId, u32)> = Vec::new();
        for (path, _) in paths.iter().filter(|(_, kind)| *kind == ReferenceMemory::Buffer) {
            let number = match buffers.iter().find(|(location, _)| *location == path.location) {
                Some((_, number)) => *number,
                None => {
                    let number = self.bindings.len() as u32;
                    let apart = self.is_separate(path.location)?;
                    self.bindings.push(if apart { Binding::SeparateLocations } else { Binding::Locations });
                    buffers.push((path.location, number));
                    number
                }
            };
            let variable = self.buffer_variable(number, *path);
            self.declared.push(DeclaredPath { path: *path, variable });
        }
        let outputs = self.result_placement() == ResultPlacement::Output;
        if outputs {
            self.declare_output();
        } else {
            self.results_buffer = self.declare_buffer(Binding::Results, "results");
        }
        // Even a rendezvous that never takes place counts as a write for compilers.
        let meets = self.concurrent_classes() > 1 && self.test.interlock_order().is_none();
        if (meets || self.has_receipts()) && !outputs {
            self.rendezvous_buffer = Some(self.declare_buffer(Binding::Rendezvous, "rendezvous"));
        }
        if self.config.has_stress {
            let number = self.bindings.len() as u32;
            self.bindings.push(Binding::Scratch);
            let variable = stress::declare_scratch(&mut self.module, number, variant.model);
            self.buffers.push(BoundBuffer { variable, binding: number, stride: 4 });
            self.scratch_buffer = Some(variable);
        }
        if !variant.stage.has_workgroups() && self.context.fixed_dispatch.is_none() {
            self.claims_buffer = Some(self.declare_buffer(Binding::Claims, "claims"));
        }
        for (path, kind) in &paths {
            match kind {
                ReferenceMemory::Buffer => continue,
                ReferenceMemory::Address => {}
                ReferenceMemory::Workgroup => {
                    let variable = self.workgroup_variable(*path);
                    self.declared.push(DeclaredPath { path: *path, variable });
                }
                ReferenceMemory::Image => {
                    let number = (self.bindings.len() + self.images.len()) as u32;
                    let float = path.element.is_float();
                    let apart = self.is_separate(path.location)?;
                    self.images.push(ImageBinding {
                        shape: variant.image_form,
                        is_float: float,
                        is_separate: apart,
                    });
                    let ty = image_type(&mut self.module, path.element, variant.image_form);
                    let name = &self.test.location(path.location).name;
                    let variable =
                        self.module.bound_variable(spirv::StorageClass::UniformConstant, ty, number, name);
                    self.decorate_reference(variable, path.location);
                    self.declared.push(DeclaredPath { path: *path, variable });
                }
            }
        }
        let addresses = match self.uses.has_memory(ReferenceMemory::Address) {
            true => 1 + u32::from(!self.context.separate_storages.is_empty()),
            false => 0,
        };
        self.parameters_block = self.module.push_constants(self.parameter_words(), addresses);
        Ok(())
    }

    fn decorate_reference(&mut self, variable: Word, location: LocationId) {
        let variant = self.config.variant;
        let decoration = match variant.reference_aliasing {
            ReferenceAliasing::Aliased => Decoration::Aliased,
            ReferenceAliasing::Restrict => Decoration::Restrict,
        };
        self.module.decorate(variable, decoration, &[]);
        if variant.readonly && !is_written(self.test, location) {
            self.module.decorate(variable, Decoration::NonWritable, &[]);
        }
        if variant.model == MemoryModel::Glsl450 && glsl::is_coherent(self.test, location) {
            self.module.decorate(variable, Decoration::Coherent, &[]);
        }
    }

    fn buffer_variable(&mut self, binding: u32, path: ReferencePath) -> Word {
        let (element, stride) = self.block_element(path);
        let block = self.module.type_array_block(element, stride, None);
        let name = &self.test.location(path.location).name;
        let variable = self.module.bound_variable(spirv::StorageClass::StorageBuffer, block, binding, name);
        self.decorate_reference(variable, path.location);
        // NVIDIA's driver (580) subtracts the offset of such a vector from the length of the buffer.
        if !path.is_vector() || path.offset == 0 {
            self.buffers.push(BoundBuffer { variable, binding, stride });
        }
        variable
    }

    /// Returns the element type of the array in a path's block, and its stride: a scalar, or a unit with a
    /// vector at its offset.
    ///
    /// A vector may thus have any offset that its components allow, which an array of vectors would not
    /// permit.
    fn block_element(&mut self, path: ReferencePath) -> (Word, u32) {
        let ty = path.spirv_type(&mut self.module);
        if path.is_vector() {
            (self.module.type_struct_at_offset(ty, path.offset), self.unit_bytes())
        } else {
            (ty, path.element.bytes())
        }
    }

    fn workgroup_variable(&mut self, path: ReferencePath) -> Word {
        let name = &self.test.location(path.location).name;
        if !self.uses.has_explicit_workgroup {
            let element = path.spirv_type(&mut self.module);
            let array = self.module.type_array(element, self.layout.lanes);
            return match self.config.variant.workgroup_memory {
                WorkgroupInitialization::Stored => {
                    self.module.global_variable(spirv::StorageClass::Workgroup, array, name)
                }
                WorkgroupInitialization::Zeroed => self.module.zeroed_variable(array, name),
            };
        }
        // Blocks of workgroup memory all start at offset 0, so each spans all of it.
        let (element, stride) = self.block_element(path);
        let length = self.workgroup_bytes() / stride;
        let block = self.module.type_array_block(element, stride, Some(length));
        let variable = self.module.global_variable(spirv::StorageClass::Workgroup, block, name);
        self.module.decorate(variable, Decoration::Aliased, &[]);
        variable
    }

    /// Returns the bytes of workgroup memory.
    pub(super) fn workgroup_bytes(&self) -> u32 {
        let each = |storage: &InitializedStorage| {
            match (self.uses.has_explicit_workgroup, storage.path) {
                (true, _) => self.unit_bytes(),
                // A vector of three has the size of a vector of four.
                (false, path) => path.element.bytes() * path.components.next_power_of_two(),
            }
        };
        self.workgroup_storages.iter().map(each).sum::<u32>().saturating_mul(self.layout.lanes)
    }

    /// Returns the bytes of a unit of location memory.
    pub(super) fn unit_bytes(&self) -> u32 {
        4 * self.uses.storage_words
    }

    fn declare_buffer(&mut self, binding: Binding, name: &str) -> Word {
        let number = self.bindings.len() as u32;
        self.bindings.push(binding);
        let block = self.module.type_array_block(self.module.u32, 4, None);
        let variable = self.module.bound_variable(spirv::StorageClass::StorageBuffer, block, number, name);
        self.buffers.push(BoundBuffer { variable, binding: number, stride: 4 });
        variable
    }

    /// Returns the targets of the test's paths for an instance: unit `n × stride + s × spacing` through each
    /// reference.
    pub(super) fn access_targets(
        &mut self,
        instance: Word,
        place: &InvocationStart,
    ) -> Result<Vec<(ReferencePath, AccessTarget)>, Rule> {
        let mut targets = Vec::new();
        let stride = self.parameter(Parameter::Stride);
        let base = self.module.emit_word(Op::IMul, &[instance, stride]);
        let mut units: Vec<Option<Word>> = vec![None; self.storages.count() as usize];
        let paths = self.uses.paths.clone();
        for (path, kind) in paths {
            let storage = self.storage_index(path.location)?;
            let target = if kind == ReferenceMemory::Workgroup {
                self.workgroup_target(path, storage, place)?
            } else {
                let known = units.get(storage as usize).copied().flatten();
                let unit = known.unwrap_or_else(|| {
                    let number = self.module.constant(storage);
                    unit_index(self, base, number)
                });
                if let Some(slot) = units.get_mut(storage as usize) {
                    *slot = Some(unit);
                }
                self.unit_target(path, kind, unit)?
            };
            targets.push((path, target));
        }
        Ok(targets)
    }

    fn variable_of(&self, path: ReferencePath) -> Result<Word, Rule> {
        let declared = self.declared.iter().find(|known| known.path == path);
        Ok(declared.ok_or(Rule::Internal("a path that was not declared"))?.variable)
    }

    /// Returns the index of an element in memory that is divided into units.
    fn element_index(&mut self, path: ReferencePath, unit: Word) -> Word {
        let in_unit = self.unit_bytes() / path.element.bytes();
        let mut index = unit;
        if in_unit > 1 {
            let factor = self.module.constant(in_unit);
            index = self.module.emit_word(Op::IMul, &[index, factor]);
        }
        if path.offset > 0 {
            let offset = self.module.constant(path.offset / path.element.bytes());
            index = self.module.emit_word(Op::IAdd, &[index, offset]);
        }
        index
    }

    /// Returns the access-chain indices from a block to a path's element of a unit.
    fn access_chain_indices(&mut self, path: ReferencePath, unit: Word) -> Vec<Word> {
        let zero = self.module.constant(0);
        if path.is_vector() {
            return vec![zero, unit, zero];
        }
        vec![zero, self.element_index(path, unit)]
    }

    pub(super) fn unit_target(
        &mut self,
        path: ReferencePath,
        kind: ReferenceMemory,
        unit: Word,
    ) -> Result<AccessTarget, Rule> {
        let element = path.spirv_type(&mut self.module);
        let pointer_type = self.module.type_pointer(pointer_storage_class(kind), element);
        let zero = self.module.constant(0);
        Ok(match kind {
            ReferenceMemory::Image => {
                let variable = self.variable_of(path)?;
                let image = image_type(&mut self.module, path.element, self.config.variant.image_form);
                // The texel of a location is that of the first word of its unit.
                let texel = self.element_index(path, unit);
                let coordinates = match self.config.variant.image_form {
                    ImageForm::OneDimensional | ImageForm::TexelBuffer => texel,
                    ImageForm::TwoDimensional => {
                        let width = self.module.constant(IMAGE_WIDTH);
                        let column = self.module.emit_word(Op::UMod, &[texel, width]);
                        let row = self.module.emit_word(Op::UDiv, &[texel, width]);
                        let pair = self.module.type_vector(self.module.u32, 2);
                        self.module.emit_on_ids(Op::CompositeConstruct, pair, &[column, row])
                    }
                };
                AccessTarget::Texel { variable, image, coordinates }
            }
            ReferenceMemory::Address => {
                let indices = self.access_chain_indices(path, unit);
                let (element, stride) = self.block_element(path);
                let block = self.module.type_array_block(element, stride, None);
                let to_block = self.module.type_pointer(pointer_storage_class(kind), block);
                let pair = self.module.type_vector(self.module.u32, 2);
                let to_pair = self.module.type_pointer(spirv::StorageClass::PushConstant, pair);
                let apart = u32::from(self.is_separate(path.location)?);
                let member = self.module.constant(self.parameter_words() + apart);
                let place =
                    self.module.emit_on_ids(Op::AccessChain, to_pair, &[self.parameters_block, member]);
                let address = self.module.emit_on_ids(Op::Load, pair, &[place]);
                let start = self.module.emit_on_ids(Op::Bitcast, to_block, &[address]);
                let name = self.test.location(path.location).name.clone();
                self.module.name(start, &name);
                let chain: Vec<Word> = std::iter::once(start).chain(indices).collect();
                let pointer = self.module.emit_on_ids(Op::AccessChain, pointer_type, &chain);
                AccessTarget::Memory { pointer, alignment: Some(path.alignment(self.unit_bytes())) }
            }
            ReferenceMemory::Buffer | ReferenceMemory::Workgroup => {
                let indices = self.access_chain_indices(path, unit);
                let variable = self.variable_of(path)?;
                let first: Vec<Word> =
                    std::iter::once(variable).chain(indices.iter().map(|_| zero)).collect();
                let chain: Vec<Word> = std::iter::once(variable).chain(indices).collect();
                let pointer = self.module.emit_on_ids(Op::AccessChain, pointer_type, &chain);
                let pointer = self.emit_pointer_form(pointer_type, pointer, &first);
                AccessTarget::Memory { pointer, alignment: None }
            }
        })
    }

    fn workgroup_target(
        &mut self,
        path: ReferencePath,
        storage: u32,
        place: &InvocationStart,
    ) -> Result<AccessTarget, Rule> {
        if self.uses.has_explicit_workgroup {
            let position = self.workgroup_storages.iter().position(|known| known.storage == storage);
            let position = position.ok_or(Rule::Internal("workgroup memory of no storage"))?;
            let first = self.module.constant(position as u32 * self.layout.lanes);
            let unit = self.module.emit_word(Op::IAdd, &[first, place.seat.lane]);
            return self.unit_target(path, ReferenceMemory::Workgroup, unit);
        }
        let element = path.spirv_type(&mut self.module);
        let pointer_type = self.module.type_pointer(spirv::StorageClass::Workgroup, element);
        let variable = self.variable_of(path)?;
        let zero = self.module.constant(0);
        let pointer = self.module.emit_on_ids(Op::AccessChain, pointer_type, &[variable, place.seat.lane]);
        let pointer = self.emit_pointer_form(pointer_type, pointer, &[variable, zero]);
        Ok(AccessTarget::Memory { pointer, alignment: None })
    }

    /// Returns the pointer in the form of the variant. The unused pointer, with the indices `first`, is in
    /// the same variable, and the compiler of the driver cannot detect that it is unused.
    fn emit_pointer_form(&mut self, ty: Word, pointer: Word, first: &[Word]) -> Word {
        match self.config.variant.pointer_form {
            PointerForm::Direct => pointer,
            PointerForm::Copy => self.module.emit_on_ids(Op::CopyObject, ty, &[pointer]),
            PointerForm::Select => {
                let other = self.module.emit_on_ids(Op::AccessChain, ty, first);
                let condition = self.emit_opaque_true();
                self.module.emit_on_ids(Op::Select, ty, &[condition, pointer, other])
            }
            PointerForm::Phi => {
                let other = self.module.emit_on_ids(Op::AccessChain, ty, first);
                let condition = self.emit_opaque_true();
                let [right, wrong, merge] = std::array::from_fn(|_| self.module.id());
                self.module.selection_merge(merge);
                self.module.branch_if(condition, right, wrong);
                for label in [right, wrong] {
                    self.module.begin_block(label);
                    self.module.branch(merge);
                }
                self.module.begin_block(merge);
                self.module.emit_on_ids(Op::Phi, ty, &[pointer, right, other, wrong])
            }
        }
    }

    /// Returns a condition that is true but opaque to the compiler: no caller uses 0 as the end marker.
    fn emit_opaque_true(&mut self) -> Word {
        let done = self.parameter(Parameter::Done);
        let zero = self.module.constant(0);
        self.module.emit_bool(Op::INotEqual, &[done, zero])
    }

    /// Determines the storages in workgroup memory.
    pub(super) fn find_workgroup_storages(&mut self) -> Result<(), Rule> {
        let mut found: Vec<InitializedStorage> = Vec::new();
        for (path, _) in self.uses.paths.iter().filter(|(_, kind)| *kind == ReferenceMemory::Workgroup) {
            let storage = self.storage_index(path.location)?;
            if found.iter().any(|known| known.storage == storage) {
                continue;
            }
            let accesses = self.accesses_to_workgroup(storage);
            let Some((user, _)) = accesses.first() else { continue };
            let Some(role) = self.layout.roles.get(usize::from(user.0)) else { continue };
            let members = self.layout.classes.get(role.class as usize);
            let Some(first) = members.and_then(|members| members.first()) else { continue };
            let mut private: Vec<ThreadId> = accesses
                .iter()
                .filter(|(_, access)| access.strength == Access::Private)
                .map(|(thread, _)| *thread)
                .collect();
            private.dedup();
            let thread = match private[..] {
                // No barrier orders private accesses, so the thread that makes them also initializes the
                // storage.
                [only] => only,
                // With a write among them, they race whichever thread initializes the storage.
                [_, _, ..] if !accesses.iter().any(|(_, access)| access.is_write()) => {
                    return Err(Rule::PrivateWorkgroupMemory);
                }
                _ => *first,
            };
            let own = self.test.location(self.test.storage_of(path.location));
            let initial_path = ReferencePath {
                element: ElementType::from_scalar(own.scalar_type()),
                offset: 0,
                components: own.components.into(),
                ..*path
            };
            found.push(InitializedStorage { storage, path: initial_path, thread });
        }
        // The path for initial values may not be part of the code.
        for storage in &found {
            if !self.uses.paths.iter().any(|(path, _)| *path == storage.path) {
                self.uses.paths.push((storage.path, ReferenceMemory::Workgroup));
            }
        }
        self.uses.paths.sort_by_key(|(path, _)| *path);
        self.workgroup_storages = found;
        Ok(())
    }

    /// Returns the accesses to a storage in workgroup memory, in the order of the threads.
    fn accesses_to_workgroup(&self, storage: u32) -> Vec<(ThreadId, &litmus::MemoryAccess)> {
        let threads = (0..).map(ThreadId).zip(&self.test.threads);
        let all = threads.flat_map(|(thread, code)| {
            let accesses = code.instructions.iter().filter_map(|instruction| instruction.kind.access());
            accesses.map(move |access| (thread, access))
        });
        all.filter(|(_, access)| {
            access.place.class == StorageClass::Workgroup
                && self.storage_index(access.place.location) == Ok(storage)
        })
        .collect()
    }

    /// Initializes workgroup memory, followed by a control barrier; empty if the driver or the previous round
    /// did that.
    pub(super) fn emit_workgroup_init(
        &mut self,
        place: &InvocationStart,
        targets: &[(ReferencePath, AccessTarget)],
    ) {
        if self.config.variant.workgroup_memory == WorkgroupInitialization::Stored {
            self.emit_initial_stores(place, targets);
        }
    }

    fn emit_initial_stores(&mut self, place: &InvocationStart, targets: &[(ReferencePath, AccessTarget)]) {
        if self.workgroup_storages.is_empty() {
            return;
        }
        self.emit_for_first_threads(place, |emitter, storage| {
            let Some(pointer) = find_pointer(targets, storage.path) else { return };
            let location = emitter.test.storage_of(storage.path.location);
            let ty = storage.path.element.spirv_type(&mut emitter.module);
            let mut parts = Vec::new();
            for component in 0..storage.path.components {
                let initial = emitter.test.initial_value(location, component as u8);
                let bits = storage.path.element.value_bits(initial);
                let words = [bits as u32, (bits >> 32) as u32];
                let words = if storage.path.element.bytes() == 8 { &words[..] } else { &words[..1] };
                parts.push(emitter.module.typed_constant(ty, words));
            }
            let value = match parts[..] {
                [only] => only,
                _ => {
                    let ty = storage.path.spirv_type(&mut emitter.module);
                    emitter.module.emit_on_ids(Op::CompositeConstruct, ty, &parts)
                }
            };
            let operands =
                [pointer, value].map(Operand::IdRef).into_iter().chain(emitter.non_private_operand());
            emitter.module.emit_void(Op::Store, operands);
        });
        self.emit_workgroup_barrier();
    }

    /// Emits a control barrier, then writes the final values of the outcome.
    pub(super) fn emit_workgroup_results(
        &mut self,
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
    ) {
        if self.workgroup_storages.is_empty() {
            return;
        }
        self.emit_workgroup_barrier();
        let observed: Vec<(LocationId, u8)> = self
            .test
            .observables()
            .into_iter()
            .filter_map(|observable| match observable {
                Observable::Location(location, component) => Some((location, component)),
                Observable::Register(..) => None,
            })
            .collect();
        self.emit_for_first_threads(place, |emitter, storage| {
            let of_this =
                |(location, _): &&(LocationId, u8)| emitter.storage_index(*location) == Ok(storage.storage);
            let wanted: Vec<(LocationId, u8)> = observed.iter().filter(of_this).copied().collect();
            let (false, Some(pointer)) = (wanted.is_empty(), find_pointer(targets, storage.path)) else {
                return;
            };
            let element = storage.path.element;
            let (ty, number) =
                (storage.path.spirv_type(&mut emitter.module), element.spirv_type(&mut emitter.module));
            let operands = std::iter::once(Operand::IdRef(pointer)).chain(emitter.non_private_operand());
            let loaded = emitter.module.emit_value(Op::Load, ty, operands);
            for (location, component) in wanted {
                let mut value = loaded;
                if storage.path.is_vector() {
                    value = emitter.module.extract(number, loaded, component.into());
                }
                if element.is_float() {
                    let integer = emitter.module.type_int(8 * element.bytes());
                    value = emitter.module.emit_on_ids(Op::ConvertFToS, integer, &[value]);
                }
                let width = if element.bytes() == 8 { 64 } else { 32 };
                if element.bytes() < 4 {
                    value = emitter.module.emit_word(Op::UConvert, &[value]);
                }
                let observable = Observable::Location(location, component);
                emitter.emit_value(ResultSlot::Register(observable), value, width, place, instance);
            }
        });
        if self.config.variant.workgroup_memory == WorkgroupInitialization::Zeroed {
            // The next round starts with the values that the driver provides for the first.
            self.emit_initial_stores(place, targets);
        }
    }

    /// Emits code for the first thread of each workgroup with workgroup memory.
    fn emit_for_first_threads(
        &mut self,
        place: &InvocationStart,
        code: impl Fn(&mut Self, InitializedStorage),
    ) {
        let mut threads: Vec<ThreadId> = Vec::new();
        for storage in &self.workgroup_storages {
            if !threads.contains(&storage.thread) {
                threads.push(storage.thread);
            }
        }
        for thread in threads {
            let [yes, merge] = std::array::from_fn(|_| self.module.id());
            let number = self.module.constant(thread.0.into());
            let is_thread = self.module.emit_bool(Op::IEqual, &[place.role, number]);
            self.module.begin_if(is_thread, yes, merge);
            for storage in self.workgroup_storages.clone() {
                if storage.thread == thread {
                    code(self, storage);
                }
            }
            self.module.continue_at(merge);
        }
    }

    /// Returns the memory operand of accesses ordered by [`DispatchEmitter::emit_workgroup_barrier`]; under
    /// the Vulkan memory model, a private access would race.
    fn non_private_operand(&self) -> Option<Operand> {
        let vulkan = self.config.variant.model == MemoryModel::Vulkan;
        vulkan.then_some(Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER))
    }

    /// Emits a control barrier of the workgroup that orders workgroup memory.
    fn emit_workgroup_barrier(&mut self) {
        let mut semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        if self.config.variant.model == MemoryModel::Vulkan {
            semantics |= MemorySemantics::MAKE_AVAILABLE | MemorySemantics::MAKE_VISIBLE;
        }
        let workgroup = self.module.constant(spirv::Scope::Workgroup as u32);
        let semantics = self.module.constant(semantics.bits());
        self.module.control_barrier(Op::ControlBarrier, workgroup, workgroup, semantics);
    }
}

fn find_pointer(targets: &[(ReferencePath, AccessTarget)], path: ReferencePath) -> Option<Word> {
    targets.iter().find_map(|(known, target)| match target {
        AccessTarget::Memory { pointer, .. } if *known == path => Some(*pointer),
        _ => None,
    })
}

/// Returns true if a kernel of the test may write a location, under any of its names.
fn is_written(test: &Test, location: LocationId) -> bool {
    let storage = test.storage_of(location);
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions
        .filter_map(|instruction| instruction.kind.access())
        .any(|access| access.is_write() && test.storage_of(access.place.location) == storage)
}
