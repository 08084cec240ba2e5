//! The memory objects of a dispatch and their initial contents.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::TexelFormat;
use rspirv::spirv::{Op, StorageClass};
use rustc_hash::FxHashMap;
use spirv_reader::SpirvType;

use super::super::image::texel_count;
use super::super::memory::{ImageLayout, MAX_BYTES, MemoryObject, address_of_byte as address_of};
use super::super::program::DecodedProgram;
use super::super::state::{DescriptorArray, WORKGROUP_TAG};
use super::super::texels::{TEXEL_BYTES, initial_texels};
use super::super::value::{ConcretePointer, ConcreteValue, PRIVATE_TAG, input_taint};
use super::{ZERO_PUSH_CONSTANTS, missing_input};
use entry_point::assumed::{ends_in_runtime_array, find_address_input};
use entry_point::input_place::{AssumedInput, InputPlace};
use entry_point::inputs::{AddressTarget, DEFAULT_BYTES, address_offset_in, default_image};
use entry_point::{AnalysisOptions, BufferRobustness, Problem, Robustness, malformed, unsupported};

/// `Dim` of texel buffers.
const TEXEL_BUFFER: u32 = 5;

/// Assumed length of a runtime-sized descriptor array.
const ASSUMED_DESCRIPTORS: u64 = 16;

/// Builder of the memory objects.
pub(super) struct ObjectBuilder<'a> {
    pub(super) options: &'a AnalysisOptions,
    pub(super) program: &'a DecodedProgram<'a>,
    /// See [`super::super::state::WalkSetup::annotated_values`].
    pub(super) annotated_values: &'a FxHashMap<u32, Vec<(u64, u32, u64)>>,
    /// Bytes of push constants by offset.
    pub(super) push: &'a BTreeMap<u64, u8>,
    /// True if inputs are annotations, which leave no defaults.
    pub(super) is_annotated: bool,
    pub(super) objects: Vec<MemoryObject>,
    pub(super) descriptors: FxHashMap<u32, DescriptorArray>,
    pub(super) bytes: u64,
    pub(super) notes: BTreeSet<String>,
}

impl ObjectBuilder<'_> {
    /// Builds the objects of all variables and stores their pointers in the globals. Returns the workgroup
    /// variables and the private variables.
    pub(super) fn build_variables(
        &mut self,
        globals: &mut [ConcreteValue],
    ) -> Result<(Vec<u32>, Vec<u32>), Problem> {
        let program = self.program;
        let (mut of_workgroup, mut of_invocation) = (Vec::new(), Vec::new());
        let mut by_binding: HashMap<(u32, u32, bool), Vec<u32>> = HashMap::new();
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
                    WORKGROUP_TAG | at as u32
                }
                StorageClass::Workgroup => {
                    of_workgroup.push(*variable);
                    WORKGROUP_TAG | (of_workgroup.len() - 1) as u32
                }
                StorageClass::Private | StorageClass::Input | StorageClass::Output => {
                    of_invocation.push(*variable);
                    PRIVATE_TAG | (of_invocation.len() - 1) as u32
                }
                StorageClass::PushConstant => {
                    let size = program.specialized.size_of(declared.ty)?;
                    if self.push.is_empty()
                        && self.is_annotated
                        && !self.annotated_values.contains_key(variable)
                    {
                        return Err(missing_input(program.module, *variable));
                    }
                    if self.push.is_empty() && !self.is_annotated {
                        self.notes.insert(ZERO_PUSH_CONSTANTS.to_owned());
                    }
                    let mut bytes = vec![0; self.reserve_bytes(size)?];
                    for (at, byte) in self.push {
                        if let Some(place) = usize::try_from(*at).ok().and_then(|at| bytes.get_mut(at)) {
                            *place = *byte;
                        }
                    }
                    let mut object =
                        MemoryObject::new(*variable, program.module.display_name(*variable), None, bytes);
                    object.apply_annotations(self.annotated_values.get(variable));
                    self.push_object(object)
                }
                class => {
                    let decorations = program.module.decorations_of(*variable);
                    // A variable without a binding aliases no other, so it gets a key that no
                    // binding has.
                    let binding = decorations.binding.unwrap_or(u32::MAX - *variable);
                    let image = class == StorageClass::UniformConstant;
                    let key = (decorations.set.unwrap_or(0), binding, image);
                    // Variables of one binding alias: they name the same objects.
                    let known = by_binding.entry(key).or_default();
                    let found = self.bound_object(*variable, declared.ty, class, (key.0, key.1), known)?;
                    for object in known {
                        if let Some(object) = self.objects.get_mut(*object as usize) {
                            object.coherent |= decorations.coherent || decorations.volatile;
                        }
                    }
                    found
                }
            };
            if let Some(place) = globals.get_mut(*slot) {
                *place = ConcreteValue::Pointer(ConcretePointer::at_object_start(number, declared.ty));
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

    /// Returns the object of a variable at a binding: the first of `known`, or an array of them.
    fn bound_object(
        &mut self,
        variable: u32,
        ty: u32,
        class: StorageClass,
        at: (u32, u32),
        known: &mut Vec<u32>,
    ) -> Result<u32, Problem> {
        let program = self.program;
        let array = match program.module.type_of_id(ty)? {
            SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element } => {
                let part = program.module.type_of_id(*element)?;
                let opaque = matches!(part, SpirvType::Handle(_));
                let block = matches!(part, SpirvType::Struct { .. })
                    && program.module.decorations.get(&ty).and_then(|known| known.stride).is_none();
                // An array of descriptors: of images or handles, or of blocks. An array with a
                // stride is data inside one buffer.
                let length = program.specialized.part_of(ty, 0)?.length.unwrap_or(1);
                (opaque || block).then_some((*element, length.min(1 << 10)))
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
            let is_runtime_sized = matches!(program.module.type_of_id(ty)?, SpirvType::RuntimeArray { .. });
            let given_levels = self.options.images.get(&at).map(|image| u64::from(image.levels));
            let has_common_contents = given_levels.is_some() || self.options.buffers.contains_key(&at);
            let mut given = self.options.given_elements(at);
            let given_length = given.last().map(|last| u64::from(*last) + 1);
            let has_assumed_length = is_runtime_sized && given_levels.or(given_length).is_none();
            let length = match is_runtime_sized {
                true => given_levels.max(given_length).unwrap_or(ASSUMED_DESCRIPTORS).min(1 << 10),
                false => length,
            };
            if has_common_contents {
                given.clear();
            }
            for index in known.len() as u64..length {
                known.push(self.build_object(variable, element, class, at, Some(index as u32))?);
            }
            let objects = known.iter().copied().take(length as usize).collect();
            self.descriptors
                .insert(holder, DescriptorArray { ty, element, objects, has_assumed_length, given });
            return Ok(holder);
        }
        if known.is_empty() {
            known.push(self.build_object(variable, ty, class, at, None)?);
        }
        Ok(known[0])
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
        if matches!(program.module.type_of_id(ty)?, SpirvType::Handle(Op::TypeImage | Op::TypeSampledImage)) {
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
        let others = program.module.variables_at(at);
        let others = others.iter().filter_map(|other| program.module.variables.get(other));
        let others = others.map(|other| program.module.element_type(other.ty)).chain([ty]);
        let has_open_length = others.clone().any(|ty| ends_in_runtime_array(program.module, ty));
        size = others.map(|ty| program.type_size(ty)).fold(size, u64::max);
        let annotated = self.annotated_values.get(&variable);
        let last = annotated
            .into_iter()
            .flatten()
            .map(|(offset, bytes, _)| offset.saturating_add((*bytes).into()))
            .max();
        let assumed = |input: &AssumedInput| input.place == InputPlace::Length(at);
        let own = self.options.buffer_elements.get(&(at.0, at.1, index.unwrap_or(0)));
        let (bytes, given) = match own.or_else(|| self.options.buffers.get(&at)) {
            Some(bytes) => (bytes.to_vec(), !self.options.assumed.iter().any(assumed)),
            None if self.is_annotated && annotated.is_none() => {
                return Err(missing_input(program.module, variable));
            }
            None if self.is_annotated => (vec![0; self.reserve_bytes(size.max(last.unwrap_or(0)))?], true),
            None if has_open_length => (vec![0; DEFAULT_BYTES.max(size) as usize], false),
            None => {
                let room = self.reserve_bytes(size)?;
                (vec![0; room], true)
            }
        };
        self.reserve_bytes(bytes.len() as u64)?;
        let sampler = self.options.samplers.get(&at).copied();
        let robustness = self.options.robustness.unwrap_or_default();
        let robustness = match (class, shared) {
            (_, Some(_)) => robustness.storage_buffers,
            (StorageClass::Uniform, None) => robustness.uniform_buffers,
            _ => BufferRobustness::Disabled,
        };
        let mut object = MemoryObject {
            has_known_length: given,
            robustness,
            sampler,
            ..MemoryObject::new(variable, name, shared, bytes)
        };
        object.apply_annotations(annotated);
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
        let mut handle = module.handle_operands.get(&ty).cloned().unwrap_or_default();
        let sampled_with = matches!(module.types.get(&ty), Some(SpirvType::Handle(Op::TypeSampledImage)));
        if sampled_with {
            handle = handle
                .first()
                .and_then(|image| module.handle_operands.get(image))
                .cloned()
                .unwrap_or_default();
        }
        let [_, dimension, _, arrayed, _, sampled, format, ..] = handle[..] else {
            return Err(malformed("an image whose type is not an image type"));
        };
        let own = self.options.image_elements.get(&(at.0, at.1, index.unwrap_or(0)));
        let index = index.filter(|_| own.is_none());
        let given_image = own.or_else(|| self.options.images.get(&at));
        let assumed = default_image(dimension, arrayed != 0);
        let given = given_image.unwrap_or(&assumed);
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
            format: TexelFormat::from_spirv_format(format),
            // `Dim` of SPIR-V: 0 is 1D, 1 is 2D, 2 is 3D, 3 is Cube.
            axes: match dimension {
                0 | TEXEL_BUFFER => 1 + (arrayed != 0) as usize,
                2 | 3 => 3,
                _ => 2 + (arrayed != 0) as usize,
            },
            is_layered: arrayed != 0,
            is_cube: dimension == 3,
            is_default: given_image.is_none(),
        };
        let count = texel_count(&texels);
        self.reserve_bytes(count.saturating_mul(TEXEL_BYTES))?;
        let bytes = initial_texels(&given.texels, count, texels.format)
            .ok_or_else(|| unsupported("these image contents"))?;
        // Only storage images can be written; sampled images are read-only.
        let class = (sampled == 2).then_some(litmus::StorageClass::Image);
        let assumed = self.options.assumed.iter().any(|input| input.place == InputPlace::Image(at));
        let (given, sampler) = (given_image.is_some() && !assumed, self.options.samplers.get(&at).copied());
        let robustness = match self.options.robustness {
            Some(Robustness { storage_buffers, .. }) if dimension == TEXEL_BUFFER => storage_buffers,
            Some(Robustness { images: true, .. }) => BufferRobustness::Discarded,
            _ => BufferRobustness::Disabled,
        };
        let object = MemoryObject {
            texels: Some(texels),
            has_known_length: given,
            robustness,
            sampler,
            ..MemoryObject::new(variable, name, class, bytes)
        };
        Ok(self.push_object(object))
    }

    /// Builds the buffers that addresses point to, and stores the addresses.
    pub(super) fn build_addresses(&mut self, globals: &[ConcreteValue]) -> Result<(), Problem> {
        let mut named: HashMap<&str, u32> = HashMap::new();
        let mut pushed = BTreeSet::new();
        let options = self.options;
        for address in &options.addresses {
            if !named.contains_key(address.name.as_str()) {
                self.reserve_bytes(address.bytes.len() as u64)?;
                let class = Some(litmus::StorageClass::Buffer);
                let object = MemoryObject::new(0, address.name.clone(), class, address.bytes.clone());
                let input = find_address_input(&options.assumed, &address.at);
                let number = self.push_object(object.into_input(input.map(input_taint)));
                named.insert(&address.name, number);
            }
        }
        for address in &options.addresses {
            let Some(number) = named.get(address.name.as_str()) else { continue };
            let value = address_of(*number, address.offset);
            let mut placed = false;
            if let AddressTarget::Address(name, offset) = &address.at
                && let Some(object) = named.get(name.as_str())
                && let Some(object) = self.objects.get_mut(*object as usize)
                && object.contains_range(*offset, 8)
            {
                object.write_scalar(*offset, 8, value, 0);
                placed = true;
            }
            for (variable, slot) in &self.program.variables {
                let Some(ConcreteValue::Pointer(pointer)) = globals.get(*slot) else { continue };
                let Some(offset) = address_offset_in(self.program.specialized, *variable, &address.at) else {
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
                            self.notes.remove(ZERO_PUSH_CONSTANTS);
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
