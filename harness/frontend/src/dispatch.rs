//! What a device is given to dispatch a kernel: its words as they are, and beside them names, numbers, constants and the contents
//! of its buffers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::TexelFormat;
use rspirv::spirv::{Capability, GlslStd450Op, Op, StorageClass};

use crate::annotations::Annotations;
use crate::assemble::name_in;
use crate::error::{Place, Problem, Refusal, malformed, unsupported};
use crate::grid::{default_image, initial_texels, pack_texels};
use crate::layout::Specialized;
use crate::lift::{DEFAULT_BYTES, Options, is_descriptor_array, local_size};
use crate::module::{Constant, HEADER_WORDS, Module, Type};
use crate::stage::Stage;

/// Elements of an array of buffers at most.
const MAX_ELEMENTS: u64 = 64;
/// Operands of a rotation of a whole subgroup: its scope, the value and how far.
const UNCLUSTERED: usize = 3;
/// Bytes of all buffers of a dispatch at most.
const MAX_BYTES: u64 = 1 << 26;

/// A buffer that a kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchBuffer {
    /// The descriptor set.
    pub set: u32,
    /// The binding in it.
    pub binding: u32,
    /// The element, where the binding is an array of buffers; else 0.
    pub element: u32,
    /// A uniform buffer, which nobody writes.
    pub uniform: bool,
    /// What a reader calls it.
    pub name: String,
    /// Contents before the dispatch: whole words.
    pub bytes: Vec<u8>,
    /// The shape of an image, whose texels the words are.
    pub image: Option<DispatchImage>,
}

/// The shape of an image whose texels have 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchImage {
    /// Texels in a row and rows; none where it has one dimension.
    pub size: (u32, Option<u32>),
    /// Whether it shows a buffer.
    pub is_buffer: bool,
    /// The number of its format in SPIR-V's list.
    pub format: u32,
}

/// A kernel as a device takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The entry point.
    pub entry: String,
    /// The words of the module, as they were read.
    pub words: Vec<u32>,
    /// Workgroups.
    pub grid: [u32; 3],
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Specialization constants that were given: ids, and values as bytes.
    pub constants: Vec<(u32, Vec<u8>)>,
    /// Push constants.
    pub push: Vec<u8>,
    /// The buffers, by set, binding and element.
    pub buffers: Vec<DispatchBuffer>,
    /// What the module declares that not every device has, by the names of Vulkan's features; each of a group of names will do.
    pub needs: Vec<Vec<&'static str>>,
    /// Capabilities that no feature known here stands for.
    pub unknown: Vec<String>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Whether it has loops, whose end a device may bring about too early.
    pub loops: bool,
    /// Whether floats are computed, compared or converted: devices may round in several ways.
    pub floats: bool,
    /// What else devices may do in several ways.
    pub varies: Option<&'static str>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Dispatch {
    /// Asks devices for one of some features.
    fn asks_for(&mut self, features: &[&'static str]) {
        if !self.needs.iter().any(|known| known == features) {
            self.needs.push(features.to_vec());
        }
    }
}

/// What a device needs to dispatch a kernel with its inputs.
///
/// # Errors
/// What of it cannot be dispatched, with its place.
pub fn dispatch(module: &Module, options: &Options) -> Result<Dispatch, Refusal> {
    dispatch_of(module, options).map_err(|problem| problem.at(Place::Module))
}

fn dispatch_of(module: &Module, options: &Options) -> Result<Dispatch, Problem> {
    if module.annotations != Annotations::default() {
        return Err(unsupported(
            "annotations of a text: a dispatch has its inputs from the command line or a case",
        ));
    }
    let entry = module.entry(options.entry.as_deref())?;
    if entry.stage() != Stage::Compute {
        let what =
            format!("`{}` is of stage {:?}, which `check`, `race` and `lint` take", entry.name, entry.model);
        return Err(Problem::EntryPoint(format!("only compute shaders are dispatched: {what}")));
    }
    let (function, name) = (entry.function, entry.name.clone());
    let (by_id, by_result) = (&options.specialization, HashMap::new());
    let local_size = local_size(module, by_id, &by_result, function)?;
    let specialized = Specialized::new(module, by_id, &by_result, Some(local_size))?;
    if !options.addresses.is_empty() {
        return Err(unsupported("buffers behind addresses, for a dispatch on a device"));
    }
    let mut all = Dispatch {
        entry: name,
        words: module.words().to_vec(),
        grid: options.grid.unwrap_or([1, 1, 1]),
        local_size,
        constants: Vec::new(),
        push: Vec::new(),
        buffers: Vec::new(),
        needs: Vec::new(),
        unknown: Vec::new(),
        workgroup_bytes: 0,
        loops: false,
        floats: false,
        varies: None,
        notes: Vec::new(),
    };
    if all.grid.contains(&0) {
        return Err(Problem::Input("a grid without workgroups".to_owned()));
    }
    if local_size.contains(&0) {
        return Err(Problem::Input("a workgroup without invocations".to_owned()));
    }
    let used = used(module, function, &mut all);
    constants(module, by_id, &mut all)?;
    capabilities(module, &mut all);
    if module.local_size(function).is_some_and(|(_, by_ids)| by_ids) {
        all.asks_for(&["maintenance4"]);
    }
    let mut places: BTreeMap<(u32, u32, u32), DispatchBuffer> = BTreeMap::new();
    let mut bytes = 0_u64;
    let mut pushed = 0;
    for (id, variable) in module.variables.iter().filter(|(id, _)| used.contains(id)) {
        match variable.class {
            StorageClass::StorageBuffer | StorageClass::Uniform => {
                buffers(&specialized, options, *id, &mut places, &mut bytes, &mut all.notes)?;
            }
            StorageClass::PushConstant => {
                pushed = pushed.max(specialized.size(variable.ty)?);
                if options.push.is_empty() {
                    all.notes.push("nothing is said of push constants, taken as zeros".to_owned());
                }
            }
            StorageClass::Workgroup => {
                all.workgroup_bytes = all.workgroup_bytes.saturating_add(specialized.size(variable.ty)?);
            }
            StorageClass::UniformConstant => {
                all.floats |= rounds(module, variable.ty);
                let image = image(module, options, *id, &mut all.notes)?;
                places.insert((image.set, image.binding, 0), image);
            }
            StorageClass::Input | StorageClass::Output | StorageClass::Private => {}
            class => {
                return Err(unsupported(format!(
                    "`{}` of storage class {class:?}, for a dispatch on a device",
                    module.name(*id)
                )));
            }
        }
    }
    all.push = vec![0; pushed.next_multiple_of(4) as usize];
    for (at, byte) in &options.push {
        if let Some(place) = usize::try_from(*at).ok().and_then(|at| all.push.get_mut(at)) {
            *place = *byte;
        }
    }
    all.buffers = places.into_values().collect();
    Ok(all)
}

/// The global variables that an entry point uses; and what is in its code.
fn used(module: &Module, function: u32, all: &mut Dispatch) -> BTreeSet<u32> {
    let (mut known, mut left) = (BTreeSet::from([function]), vec![function]);
    let mut used = BTreeSet::new();
    while let Some(function) = left.pop() {
        let Some(function) = module.functions.get(&function) else { continue };
        for (at, instruction) in function.code.iter().enumerate() {
            let operands = module.operands(instruction);
            if instruction.op == Op::FunctionCall
                && let Some(called) = operands.first().filter(|called| known.insert(**called))
            {
                left.push(*called);
            }
            let jumps = matches!(instruction.op, Op::Branch | Op::BranchConditional | Op::Switch);
            let back = |label: &u32| function.labels.get(label).is_some_and(|position| *position <= at);
            all.loops |= jumps && operands.iter().any(back);
            all.floats |= is_float(module, instruction.ty)
                && !matches!(instruction.op, Op::Load | Op::CopyObject | Op::Image | Op::ImageRead)
                || leaves_floats(instruction.op, operands);
            if is_of_subgroup(instruction.op) && is_extended(module, instruction.ty) {
                all.asks_for(&["shaderSubgroupExtendedTypes"]);
            }
            if instruction.op == Op::GroupNonUniformRotateKHR && operands.len() > UNCLUSTERED {
                all.asks_for(&["shaderSubgroupRotateClustered"]);
            }
            if matches!(instruction.op, Op::SRem | Op::SMod) {
                // "Precision and Operation of SPIR-V Instructions": of a negative operand the result is undefined.
                all.varies =
                    Some("a remainder of signed numbers, which Vulkan leaves open where one is negative");
            }
            used.extend(operands.iter().filter(|id| module.variables.contains_key(id)));
        }
    }
    used
}

/// Whether an instruction makes something else of floats, or may do so: what it gives depends on how they were rounded.
fn leaves_floats(op: Op, operands: &[u32]) -> bool {
    match op {
        Op::ExtInst => {
            let integers = [
                GlslStd450Op::SAbs,
                GlslStd450Op::SSign,
                GlslStd450Op::UMin,
                GlslStd450Op::SMin,
                GlslStd450Op::UMax,
                GlslStd450Op::SMax,
                GlslStd450Op::UClamp,
                GlslStd450Op::SClamp,
                GlslStd450Op::FindILsb,
                GlslStd450Op::FindSMsb,
                GlslStd450Op::FindUMsb,
            ];
            !integers.iter().any(|known| operands.get(1) == Some(&(*known as u32)))
        }
        Op::ConvertFToU | Op::ConvertFToS | Op::QuantizeToF16 | Op::IsNan | Op::IsInf => true,
        Op::FOrdEqual | Op::FOrdNotEqual | Op::FOrdLessThan | Op::FOrdGreaterThan => true,
        Op::FOrdLessThanEqual | Op::FOrdGreaterThanEqual | Op::FUnordEqual | Op::FUnordNotEqual => true,
        Op::FUnordLessThan | Op::FUnordGreaterThan => true,
        Op::FUnordLessThanEqual | Op::FUnordGreaterThanEqual => true,
        _ => false,
    }
}

/// Whether it is an operation of a subgroup.
fn is_of_subgroup(op: Op) -> bool {
    format!("{op:?}").starts_with("GroupNonUniform")
}

/// Whether subgroups take numbers of a type by a feature of its own (VUID-RuntimeSpirv-None-06275).
fn is_extended(module: &Module, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(Type::Integer { bits, .. }) => *bits != 32,
        Some(Type::Float { bits }) => *bits == 16,
        Some(Type::Vector { element, .. }) => is_extended(module, *element),
        _ => false,
    }
}

/// Whether numbers of a type are floats.
fn is_float(module: &Module, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(Type::Float { .. } | Type::Matrix { .. }) => true,
        Some(Type::Vector { element, .. }) => matches!(module.types.get(element), Some(Type::Float { .. })),
        _ => false,
    }
}

fn constants(module: &Module, by_id: &HashMap<u32, u64>, all: &mut Dispatch) -> Result<(), Problem> {
    let mut given: Vec<(&u32, &u64)> = by_id.iter().collect();
    given.sort_unstable();
    for (id, value) in given {
        let decorated = module.decorations.iter().find(|(_, known)| known.specialization == Some(*id));
        let Some((ty, Constant::Scalar(_))) = decorated.and_then(|(result, _)| module.constants.get(result))
        else {
            all.notes.push(format!("no specialization constant has the id {id}"));
            continue;
        };
        let bytes = match module.ty(*ty)? {
            Type::Integer { bits, .. } | Type::Float { bits } => bits.div_ceil(8) as usize,
            // VkBool32.
            _ => 4,
        };
        let value = value.to_le_bytes();
        let value =
            value.get(..bytes).ok_or_else(|| malformed("a specialization constant of more than 8 bytes"))?;
        all.constants.push((*id, value.to_vec()));
    }
    Ok(())
}

/// Whether devices may round what is written to an image, or what is read of it.
fn rounds(module: &Module, ty: u32) -> bool {
    let format = module.handles.get(&ty).and_then(|handle| handle.get(6)).copied();
    // Rgba32f, R32f and Rg32f, and whatever has integers, keep what they are given.
    !matches!(format, Some(1 | 3 | 6 | 21..=41))
}

/// The storage image, or the buffer of texels, of a variable.
fn image(
    module: &Module,
    options: &Options,
    id: u32,
    notes: &mut Vec<String>,
) -> Result<DispatchBuffer, Problem> {
    let ty = module.variables.get(&id).map_or(0, |variable| variable.ty);
    let name = module.variable_name(id, ty);
    let refused = |what: &str| unsupported(format!("{what} `{name}`, for a dispatch on a device"));
    if !matches!(module.types.get(&ty), Some(Type::Handle(Op::TypeImage))) {
        return Err(refused("the array of images, or the sampler"));
    }
    let decorations = module.decorations(id);
    let handle = module.handles.get(&ty).map_or(&[][..], Vec::as_slice);
    let (Some(binding), [_, dimension @ (0 | 1 | 5), _, 0, 0, 2, format, ..]) = (decorations.binding, handle)
    else {
        return Err(refused("the sampled, layered, multisampled or three-dimensional image"));
    };
    let at = (decorations.set.unwrap_or(0), binding);
    let assumed = default_image(*dimension, false);
    let given = options.images.get(&at).unwrap_or(&assumed);
    let [width, height, _] = given.size;
    if !options.images.contains_key(&at) {
        notes.push(format!("nothing is said of image `{name}`, taken as {width}x{height} of zeros"));
    }
    if given.levels > 1 {
        return Err(refused("several levels of"));
    }
    let size = (width, (*dimension == 1).then_some(height));
    let count = u64::from(width) * u64::from(size.1.unwrap_or(1));
    let kept = TexelFormat::of(*format)
        .and_then(|format| pack_texels(format, &initial_texels(&given.texels, count, Some(format))?));
    let bytes =
        kept.ok_or_else(|| refused("the format, which has no 32 bits or is not named, of the image"))?;
    let image = Some(DispatchImage { size, is_buffer: *dimension == 5, format: *format });
    Ok(DispatchBuffer { set: at.0, binding, element: 0, uniform: false, name, bytes, image })
}

/// The buffers at the binding of a variable, unless they are there already.
fn buffers(
    specialized: &Specialized<'_>,
    options: &Options,
    id: u32,
    places: &mut BTreeMap<(u32, u32, u32), DispatchBuffer>,
    all: &mut u64,
    notes: &mut Vec<String>,
) -> Result<(), Problem> {
    let module = specialized.module;
    let Some(variable) = module.variables.get(&id) else { return Ok(()) };
    let decorations = module.decorations(id);
    let (set, binding) = (decorations.set.unwrap_or(0), decorations.binding);
    let mut name = module.name(id);
    let binding = binding.ok_or_else(|| unsupported(format!("`{name}` without a binding")))?;
    let (mut ty, mut count, mut is_array) = (variable.ty, 1, false);
    if is_descriptor_array(module, id, ty) {
        count = match module.ty(ty)? {
            Type::Array { length, .. } => specialized.length(*length)?,
            _ => {
                return Err(unsupported(format!(
                    "`{name}`, an array of buffers without a length, for a dispatch on a device"
                )));
            }
        };
        if count > MAX_ELEMENTS {
            return Err(Problem::Budget {
                what: "elements of an array of buffers",
                bound: MAX_ELEMENTS as usize,
            });
        }
        (ty, is_array) = (specialized.part_of(ty, 0)?.ty, true);
    }
    name = module.variable_name(id, ty);
    let uniform = variable.class == StorageClass::Uniform && module.decorations(ty).block;
    let size = specialized.size(ty)?;
    for element in 0..count as u32 {
        let given = options.buffers.get(&(set, binding));
        let bytes = match given {
            Some(bytes) if is_open(specialized, ty) => (bytes.len() as u64).max(size),
            None if is_open(specialized, ty) => {
                if !places.contains_key(&(set, binding, element)) {
                    notes.push(format!("nothing is said of `{name}`, taken as 64 KiB of zeros"));
                }
                DEFAULT_BYTES.max(size)
            }
            // Nothing beyond a type of fixed size is ever looked at.
            Some(_) | None => size,
        };
        let bytes = bytes.max(4).next_multiple_of(4);
        *all = all.saturating_add(bytes);
        if *all > MAX_BYTES {
            return Err(Problem::Budget { what: "bytes of buffers", bound: MAX_BYTES as usize });
        }
        let mut contents = given.cloned().unwrap_or_default();
        contents.resize(bytes as usize, 0);
        let name = if is_array { format!("{name}[{element}]") } else { name.clone() };
        let buffer = DispatchBuffer { set, binding, element, uniform, name, bytes: contents, image: None };
        match places.get_mut(&(set, binding, element)) {
            // Variables that share a binding see one buffer, the largest of them.
            Some(known) if known.bytes.len() >= buffer.bytes.len() => known.uniform &= uniform,
            Some(known) => *known = DispatchBuffer { uniform: known.uniform && uniform, ..buffer },
            None => {
                places.insert((set, binding, element), buffer);
            }
        }
    }
    Ok(())
}

/// Whether a type ends in an array of no fixed length.
fn is_open(specialized: &Specialized<'_>, ty: u32) -> bool {
    match specialized.module.types.get(&ty) {
        Some(Type::RuntimeArray { .. }) => true,
        Some(Type::Struct { members }) => members.last().is_some_and(|member| is_open(specialized, *member)),
        _ => false,
    }
}

/// What readers call words of buffers: by set, binding, element and offset in bytes.
///
/// # Errors
/// As for [`dispatch`].
pub fn element_names(
    module: &Module,
    options: &Options,
    places: &[(u32, u32, u32, u64)],
) -> Result<Vec<String>, Refusal> {
    let nowhere = |problem: Problem| problem.at(Place::Module);
    let function = module.entry(options.entry.as_deref()).map_err(nowhere)?.function;
    let by_result = HashMap::new();
    let local_size = local_size(module, &options.specialization, &by_result, function).map_err(nowhere)?;
    let specialized =
        Specialized::new(module, &options.specialization, &by_result, Some(local_size)).map_err(nowhere)?;
    let mut variables: HashMap<(u32, u32), u32> = HashMap::new();
    for id in module.variables.keys() {
        let decorations = module.decorations(*id);
        if let Some(binding) = decorations.binding {
            variables.entry((decorations.set.unwrap_or(0), binding)).or_insert(*id);
        }
    }
    let name = |(set, binding, element, offset): &(u32, u32, u32, u64)| match variables.get(&(*set, *binding))
    {
        Some(variable) if let Some(width) = width_of_image(module, options, *variable) => {
            let name = module.variable_name(*variable, module.variables.get(variable).map_or(0, |of| of.ty));
            let texel = offset / 4;
            match width {
                Some(width) => format!("{name}[{},{}]", texel % u64::from(width), texel / u64::from(width)),
                None => format!("{name}[{texel}]"),
            }
        }
        Some(variable) => {
            let array = module
                .variables
                .get(variable)
                .is_some_and(|of| is_descriptor_array(module, *variable, of.ty));
            let instance = if array { u64::from(*element) + 1 } else { 0 };
            let (name, left) = name_in(&specialized, *variable, instance, *offset);
            if left == 0 { name } else { format!("{name}+{left}") }
        }
        None => format!("{set}.{binding}@{offset}"),
    };
    Ok(places.iter().map(name).collect())
}

/// Of an image how many texels a row has, where it has rows; `None` for what is none.
fn width_of_image(module: &Module, options: &Options, variable: u32) -> Option<Option<u32>> {
    let ty = module.variables.get(&variable)?.ty;
    let Some(Type::Handle(Op::TypeImage)) = module.types.get(&ty) else { return None };
    let dimension = *module.handles.get(&ty)?.get(1)?;
    let decorations = module.decorations(variable);
    let at = (decorations.set.unwrap_or(0), decorations.binding?);
    let width =
        options.images.get(&at).map_or(default_image(dimension, false).size[0], |image| image.size[0]);
    Some((dimension == 1).then_some(width.max(1)))
}

/// The features that capabilities of modules stand for; none for those that every device has.
fn features(capability: Capability) -> Option<&'static [&'static str]> {
    Some(match capability {
        Capability::Matrix
        | Capability::Shader
        | Capability::ImageQuery
        | Capability::Sampled1D
        | Capability::Image1D
        | Capability::SampledBuffer
        | Capability::ImageBuffer => &[],
        Capability::Int64 => &["shaderInt64"],
        Capability::Int16 => &["shaderInt16"],
        Capability::Int8 => &["shaderInt8"],
        Capability::Float16 => &["shaderFloat16"],
        Capability::Float64 => &["shaderFloat64"],
        Capability::Int64Atomics => &["shaderBufferInt64Atomics", "shaderSharedInt64Atomics"],
        Capability::StorageBuffer16BitAccess => &["storageBuffer16BitAccess"],
        Capability::UniformAndStorageBuffer16BitAccess => &["uniformAndStorageBuffer16BitAccess"],
        Capability::StorageBuffer8BitAccess => &["storageBuffer8BitAccess"],
        Capability::UniformAndStorageBuffer8BitAccess => &["uniformAndStorageBuffer8BitAccess"],
        Capability::StorageImageExtendedFormats => &["shaderStorageImageExtendedFormats"],
        Capability::StorageBufferArrayDynamicIndexing => &["shaderStorageBufferArrayDynamicIndexing"],
        Capability::RuntimeDescriptorArray => &["runtimeDescriptorArray"],
        Capability::VariablePointersStorageBuffer => &["variablePointersStorageBuffer"],
        Capability::VariablePointers => &["variablePointers"],
        Capability::VulkanMemoryModel => &["vulkanMemoryModel"],
        Capability::VulkanMemoryModelDeviceScope => &["vulkanMemoryModelDeviceScope"],
        Capability::PhysicalStorageBufferAddresses => &["bufferDeviceAddress"],
        Capability::GroupNonUniform => &["VK_SUBGROUP_FEATURE_BASIC_BIT"],
        Capability::GroupNonUniformVote => &["VK_SUBGROUP_FEATURE_VOTE_BIT"],
        Capability::GroupNonUniformArithmetic => &["VK_SUBGROUP_FEATURE_ARITHMETIC_BIT"],
        Capability::GroupNonUniformBallot => &["VK_SUBGROUP_FEATURE_BALLOT_BIT"],
        Capability::GroupNonUniformShuffle => &["VK_SUBGROUP_FEATURE_SHUFFLE_BIT"],
        Capability::GroupNonUniformShuffleRelative => &["VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT"],
        Capability::GroupNonUniformClustered => &["VK_SUBGROUP_FEATURE_CLUSTERED_BIT"],
        Capability::GroupNonUniformQuad => &["VK_SUBGROUP_FEATURE_QUAD_BIT"],
        Capability::GroupNonUniformRotateKHR => &["shaderSubgroupRotate"],
        Capability::AtomicFloat16AddEXT => &["shaderBufferFloat16AtomicAdd", "shaderSharedFloat16AtomicAdd"],
        Capability::AtomicFloat32AddEXT => &["shaderBufferFloat32AtomicAdd", "shaderSharedFloat32AtomicAdd"],
        Capability::AtomicFloat64AddEXT => &["shaderBufferFloat64AtomicAdd", "shaderSharedFloat64AtomicAdd"],
        Capability::AtomicFloat16MinMaxEXT => {
            &["shaderBufferFloat16AtomicMinMax", "shaderSharedFloat16AtomicMinMax"]
        }
        Capability::AtomicFloat32MinMaxEXT => {
            &["shaderBufferFloat32AtomicMinMax", "shaderSharedFloat32AtomicMinMax"]
        }
        Capability::AtomicFloat64MinMaxEXT => {
            &["shaderBufferFloat64AtomicMinMax", "shaderSharedFloat64AtomicMinMax"]
        }
        Capability::DotProduct
        | Capability::DotProductInputAll
        | Capability::DotProductInput4x8Bit
        | Capability::DotProductInput4x8BitPacked => &["shaderIntegerDotProduct"],
        Capability::ShaderClockKHR => &["shaderSubgroupClock", "shaderDeviceClock"],
        Capability::WorkgroupMemoryExplicitLayoutKHR => &["workgroupMemoryExplicitLayout"],
        Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR => {
            &["workgroupMemoryExplicitLayout8BitAccess"]
        }
        Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR => {
            &["workgroupMemoryExplicitLayout16BitAccess"]
        }
        _ => return None,
    })
}

/// Whether operations of subgroups, or their size, come with a capability.
fn of_subgroups(capability: Capability) -> bool {
    let name = format!("{capability:?}");
    name.starts_with("Group") || name.starts_with("Subgroup")
}

/// The numbers of the capabilities that the module declares.
fn declared_capabilities(module: &Module) -> impl Iterator<Item = u32> {
    let mut rest = module.words().get(HEADER_WORDS..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first().filter(|first| **first as u16 == Op::Capability as u16)?;
        let capability = rest.get(1).copied();
        rest = rest.get((first >> 16).max(1) as usize..).unwrap_or_default();
        capability
    })
}

fn capabilities(module: &Module, all: &mut Dispatch) {
    let mut declared = BTreeSet::new();
    for instruction in declared_capabilities(module) {
        match Capability::from_u32(instruction) {
            Some(capability) => {
                if of_subgroups(capability) {
                    all.varies = Some("the size of subgroups, or which invocations make one");
                }
                if declared.insert(instruction) {
                    match features(capability) {
                        Some([]) => {}
                        Some(features) => all.asks_for(features),
                        None => all.unknown.push(format!("{capability:?}")),
                    }
                }
            }
            None => all.unknown.push(format!("capability {instruction}")),
        }
    }
}
