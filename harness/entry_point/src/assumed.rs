//! Inputs that no option supplies: their places in the module, names, and the options that supply them.
//!
//! A walk needs a value for each of them. It takes an assumed one, and tracks by taint what the value decides
//! ([`crate::grid`]). So an answer can name the inputs that it depends on.

use std::collections::{BTreeSet, HashMap, HashSet};

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{
    ArgumentPlace, AtomicFunction, AtomicKind, MemoryEffect, PointerAccess, Specialized, SpirvConstant,
    SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation, SpirvType,
};

use crate::contents::{AddressTarget, DEFAULT_BYTES, FILL_WORDS, fill_bytes, parse_integer};
use crate::dataflow::called_functions;
use crate::error::Problem;
use crate::input_place::{
    AssumedInput, InputKind, InputPlace, LaunchPart, OverrideValue, SetBinding, UnsetOverride,
};
use crate::launch::reflected_push_ranges;
use crate::layout::local_size_of;
use crate::options::AnalysisOptions;

/// Upper bound on the scalars of one block that are separate inputs.
const MAX_SCALARS: usize = 48;
/// Upper bound on the nesting of the types of a block.
const MAX_DEPTH: u32 = 16;
impl AssumedInput {
    /// Describes the value in `options`.
    pub fn describe_value(&self, options: &AnalysisOptions) -> String {
        if let Some(at) = self.address_target() {
            return describe_address(options, &at);
        }
        match &self.place {
            InputPlace::Push(offset, bytes) => {
                let byte = |at: u64| options.push.get(&at).copied().unwrap_or(0);
                self.format_number((0..u64::from(*bytes)).map(|at| byte(offset + at)))
            }
            InputPlace::Scalar(at, offset, bytes) => {
                let contents = options.buffers.get(at).map_or(&[][..], |contents| contents);
                let byte = |at: u64| contents.get(at as usize).copied().unwrap_or(0);
                self.format_number((0..u64::from(*bytes)).map(|at| byte(offset + at)))
            }
            InputPlace::Contents(at) => {
                let Some(contents) = options.buffers.get(at) else { return "zeros".to_owned() };
                fill_word_of(contents, &separate_scalars(options, *at)).to_owned()
            }
            InputPlace::Length(at) => {
                let bytes = options.buffers.get(at).map_or(DEFAULT_BYTES, |bytes| bytes.len() as u64);
                format!("{bytes} bytes")
            }
            InputPlace::Image(at) => match options.images.get(at) {
                Some(image) => {
                    let [x, y, z] = image.size;
                    let fill = match &image.texels {
                        crate::contents::TexelInput::Word(word) => word.as_str(),
                        crate::contents::TexelInput::Bytes(_) => "bytes",
                    };
                    format!("{x}x{y}x{z} of {fill}")
                }
                None => "zeros (default size)".to_owned(),
            },
            InputPlace::Constant(id) | InputPlace::Launch(LaunchPart::LocalSize(id, _)) => {
                options.specialization.get(id).map_or("its default".to_owned(), u64::to_string)
            }
            InputPlace::Launch(LaunchPart::Workgroups(_) | LaunchPart::Invocations(_)) => {
                options.grid.map_or("one workgroup".to_owned(), |[x, y, z]| format!("{x},{y},{z}"))
            }
            InputPlace::Override(OverrideValue { value, .. }) => value.clone(),
            InputPlace::RayQueries => options.ray_queries.unwrap_or_default().name().to_owned(),
        }
    }

    /// Returns true for the contents of a buffer, which an address may point to.
    pub fn is_contents(&self) -> bool {
        matches!(self.place, InputPlace::Contents(_)) || self.kind == InputKind::Address
    }

    /// Returns true for an address, and for the second half of one that the code composes of two integers.
    pub fn is_in_address(&self, assumed: &[AssumedInput]) -> bool {
        let half = match self.place {
            InputPlace::Push(offset, _) => offset.checked_sub(4).map(AddressTarget::Push),
            InputPlace::Scalar(at, offset, _) => {
                offset.checked_sub(4).map(|offset| AddressTarget::Buffer(at, offset))
            }
            _ => None,
        };
        let is_second = || assumed.iter().any(|other| other.address_target() == half);
        self.address_target().is_some() || half.is_some() && is_second()
    }

    /// Returns the place of an address.
    pub fn address_target(&self) -> Option<AddressTarget> {
        match self.place {
            InputPlace::Push(offset, _) if self.kind == InputKind::Address => {
                Some(AddressTarget::Push(offset))
            }
            InputPlace::Scalar(at, offset, _) if self.kind == InputKind::Address => {
                Some(AddressTarget::Buffer(at, offset))
            }
            _ => None,
        }
    }

    fn format_number(&self, bytes: impl DoubleEndedIterator<Item = u8>) -> String {
        // Little-endian, as in memory.
        let bits = bytes.rev().fold(0_u64, |all, byte| all << 8 | u64::from(byte));
        match self.kind {
            InputKind::Float(width @ (32 | 64)) => arithmetic::format_float(bits, width),
            _ => bits.to_string(),
        }
    }
}

/// Returns offset and size of the scalars of a buffer that are separate inputs or given by their names.
pub fn separate_scalars(options: &AnalysisOptions, at: SetBinding) -> Vec<(u64, u32)> {
    let assumed = options.assumed.iter().filter_map(|input| match input.place {
        InputPlace::Scalar(of, offset, bytes) if of == at => Some((offset, bytes)),
        _ => None,
    });
    let given = options.given_members.get(&at).into_iter().flatten();
    assumed.chain(given.map(|(offset, bytes)| (*offset, *bytes))).collect()
}

/// Returns the index of the address at a place.
pub fn find_address_input(assumed: &[AssumedInput], at: &AddressTarget) -> Option<usize> {
    assumed.iter().position(|input| input.address_target().as_ref() == Some(at))
}

fn describe_address(options: &AnalysisOptions, at: &AddressTarget) -> String {
    let bound = options.addresses.iter().find(|address| address.at == *at);
    bound.map_or("no buffer".to_owned(), |address| {
        format!("a buffer of {} bytes of {}", address.bytes.len(), fill_word_of(&address.bytes, &[]))
    })
}

/// Returns the fill word that produces contents, apart from scalars at given offsets and sizes.
pub(crate) fn fill_word_of(contents: &[u8], scalars: &[(u64, u32)]) -> &'static str {
    let is_separate_scalar = |position: usize| {
        scalars.iter().any(|(offset, bytes)| {
            (*offset as usize..(*offset as usize).saturating_add(*bytes as usize)).contains(&position)
        })
    };
    let produces_contents = |word: &&&str| {
        let produced = fill_bytes(word, contents.len() as u64).unwrap_or_default();
        contents
            .iter()
            .zip(&produced)
            .enumerate()
            .all(|(at, (one, other))| one == other || is_separate_scalar(at))
    };
    FILL_WORDS.iter().find(produces_contents).copied().unwrap_or("bytes")
}

/// Returns the inputs of an entry point that the options do not supply, in the order of their places.
///
/// Modules with annotations define their own inputs, so none is missing.
///
/// # Errors
/// If the types of a variable are malformed.
pub fn missing_inputs(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
    options: &AnalysisOptions,
    function: u32,
) -> Result<Vec<AssumedInput>, Problem> {
    let mut all = Vec::new();
    if module.annotations != spirv_reader::annotations::Annotations::default() {
        return Ok(all);
    }
    let used = used_ids(module, function);
    for (id, variable) in module.variables.iter().filter(|(id, _)| used.contains(id)) {
        let decorations = module.decorations_of(*id);
        let binding = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        let block = if module.is_unnamed(*id) { String::new() } else { module.display_name(*id) };
        match variable.class {
            StorageClass::PushConstant => {
                let mut scalars = Vec::new();
                add_scalars(specialized, variable.ty, 0, &block, 0, &mut scalars)?;
                name_arguments(module, Some(function), None, &mut scalars);
                let reflected = reflected_push_ranges(specialized);
                scalars.retain(|scalar| !reflected.iter().any(|range| range.contains(&scalar.offset)));
                let bound = |offset: u64| {
                    options.addresses.iter().any(|known| {
                        crate::contents::address_offset_in(specialized, *id, &known.at) == Some(offset)
                    })
                };
                for scalar in scalars {
                    // One given byte suffices: the author has considered the scalar.
                    let given = (0..u64::from(scalar.bytes))
                        .any(|at| options.push.contains_key(&(scalar.offset + at)));
                    if !given && !bound(scalar.offset) {
                        all.push(AssumedInput {
                            place: InputPlace::Push(scalar.offset, scalar.bytes),
                            name: scalar.name,
                            kind: scalar.kind,
                        });
                    }
                }
            }
            StorageClass::StorageBuffer | StorageClass::Uniform
                if decorations.binding.is_some()
                    && options.given_elements(binding).is_empty()
                    && (!options.buffers.contains_key(&binding)
                        || options.given_members.contains_key(&binding)) =>
            {
                let is_given = |offset: u64| {
                    options.given_members.get(&binding).is_some_and(|given| given.contains_key(&offset))
                };
                // The elements of an array of buffers have equal contents.
                let ty = module.element_type(variable.ty);
                let known =
                    |all: &[AssumedInput], place: &InputPlace| all.iter().any(|one| one.place == *place);
                let mut scalars = Vec::new();
                add_scalars(specialized, ty, 0, &block, 0, &mut scalars)?;
                name_arguments(module, Some(function), Some(binding), &mut scalars);
                for scalar in scalars {
                    let place = InputPlace::Scalar(binding, scalar.offset, scalar.bytes);
                    if !known(&all, &place) && !is_given(scalar.offset) {
                        all.push(AssumedInput { place, name: scalar.name, kind: scalar.kind });
                    }
                }
                let name = module.variable_name(*id, variable.ty);
                if !known(&all, &InputPlace::Contents(binding)) {
                    let kind = element_kind(specialized, ty, 0);
                    all.push(AssumedInput { place: InputPlace::Contents(binding), name: name.clone(), kind });
                }
                if ends_in_runtime_array(module, ty) && !known(&all, &InputPlace::Length(binding)) {
                    let kind = InputKind::Other;
                    all.push(AssumedInput { place: InputPlace::Length(binding), name, kind });
                }
            }
            StorageClass::UniformConstant
                if decorations.binding.is_some()
                    && options.given_elements(binding).is_empty()
                    && !options.images.contains_key(&binding) =>
            {
                let name = module.variable_name(*id, variable.ty);
                let ty = module.element_type(variable.ty);
                let image = matches!(
                    module.types.get(&ty),
                    Some(SpirvType::Handle(Op::TypeImage | Op::TypeSampledImage))
                );
                if image && !all.iter().any(|one| one.place == InputPlace::Image(binding)) {
                    let kind = InputKind::Other;
                    all.push(AssumedInput { place: InputPlace::Image(binding), name, kind });
                }
            }
            _ => {}
        }
    }
    let mut constants: Vec<AssumedInput> = Vec::new();
    let mut ids: Vec<u32> = module.constants.keys().copied().collect();
    ids.sort_unstable();
    for id in &ids {
        let Some(number) = module.decorations_of(*id).specialization else { continue };
        let Some((ty, constant)) = module.constants.get(id) else { continue };
        let known = |one: &AssumedInput| one.place == InputPlace::Constant(number);
        if matches!(constant, SpirvConstant::Scalar(_))
            && !options.specialization.contains_key(&number)
            && !constants.iter().any(known)
        {
            let kind = scalar_kind(module, *ty).map_or(InputKind::Other, |of| of.0);
            let name = constant_name(module, number);
            constants.push(AssumedInput { place: InputPlace::Constant(number), name, kind });
        }
    }
    all.extend(constants);
    let overrides = options.unset_overrides.iter().filter(|unset| !unset.value.is_default());
    let overrides = overrides.map(|UnsetOverride { name, value }| AssumedInput {
        place: InputPlace::Override(value.clone()),
        name: name.clone(),
        kind: InputKind::Other,
    });
    all.extend(overrides);
    let is_ray_query = |instruction: &SpirvInstruction| {
        matches!(module.operation(instruction), SpirvOperation::RayQuery { .. })
    };
    if options.ray_queries.is_none()
        && reachable_functions(module, function).any(|one| one.code.iter().any(is_ray_query))
    {
        let name = "ray queries".to_owned();
        all.push(AssumedInput { place: InputPlace::RayQueries, name, kind: InputKind::Other });
    }
    all.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(all)
}

/// Returns the parts of the launch of a compute shader that the options do not supply.
pub fn missing_launch(module: &SpirvModule, options: &AnalysisOptions, function: u32) -> Vec<AssumedInput> {
    if module.annotations != spirv_reader::annotations::Annotations::default() {
        return Vec::new();
    }
    let input = |part: LaunchPart, name: String| AssumedInput {
        place: InputPlace::Launch(part),
        name,
        kind: InputKind::Integer,
    };
    let parts = (0..3).flat_map(|axis| [LaunchPart::Workgroups(axis), LaunchPart::Invocations(axis)]);
    let grid = parts.filter(|_| options.grid.is_none()).map(|part| input(part, "grid".to_owned()));
    let sizes = local_size_constants(module, options, function)
        .into_iter()
        .map(|(id, axes)| input(LaunchPart::LocalSize(id, axes), constant_name(module, id)));
    grid.chain(sizes).collect()
}

/// Returns the axes of the local size that each specialization constant decides.
pub fn local_size_constants(
    module: &SpirvModule,
    options: &AnalysisOptions,
    function: u32,
) -> Vec<(u32, [bool; 3])> {
    let size = |number: Option<u32>| {
        let mut by_id = options.specialization.clone();
        // A prime number, which no default is.
        by_id.extend(number.map(|number| (number, 61)));
        local_size_of(module, &by_id, &Default::default(), function).ok()
    };
    let Some(default) = size(None) else { return Vec::new() };
    let ids: BTreeSet<u32> = module.decorations.values().filter_map(|own| own.specialization).collect();
    let sets_local_size = |id: &u32| {
        let changed = size(Some(*id))?;
        let axes = [0, 1, 2].map(|axis: usize| changed[axis] != default[axis]);
        axes.contains(&true).then_some((*id, axes))
    };
    ids.iter().filter(|id| !options.specialization.contains_key(id)).filter_map(sets_local_size).collect()
}

/// Returns the name of a specialization constant.
pub fn constant_name(module: &SpirvModule, number: u32) -> String {
    let is_of = |place: ArgumentPlace| place == ArgumentPlace::Workgroup(number);
    let argument = module.kernel_arguments.iter().find(|argument| is_of(argument.place));
    let decorated = module.decorations.iter().filter(|(_, own)| own.specialization == Some(number));
    let named = || decorated.filter_map(|(result, _)| module.source_name(*result)).min();
    let declared = || named().map_or_else(|| format!("spec[{number}]"), str::to_owned);
    argument.map_or_else(declared, |argument| format!("elements of {}", argument.name))
}

/// Names the scalars of a block, or of the push constants, after the arguments that hold them.
fn name_arguments(
    module: &SpirvModule,
    function: Option<u32>,
    binding: Option<SetBinding>,
    scalars: &mut [BlockScalar],
) {
    let arguments = module
        .kernel_arguments
        .iter()
        .filter(|argument| function.is_none_or(|function| argument.function == function));
    for argument in arguments {
        let (offset, size) = match (argument.place, binding) {
            (ArgumentPlace::Push(offset, size), None) => (offset, size),
            (ArgumentPlace::Block(at, offset, size), Some(binding)) if at == binding => (offset, size),
            _ => continue,
        };
        let parts = scalars.iter_mut().filter(|scalar| (offset..offset + size).contains(&scalar.offset));
        for (index, scalar) in parts.enumerate() {
            scalar.name = match u64::from(scalar.bytes) < size {
                true => format!("{}.{}", argument.name, ["x", "y", "z", "w"].get(index).unwrap_or(&"s")),
                false => argument.name.clone(),
            };
        }
    }
}

pub struct BlockScalar {
    pub offset: u64,
    pub bytes: u32,
    pub name: String,
    kind: InputKind,
}

impl BlockScalar {
    /// Returns the scalar of a specialization constant.
    pub fn of_constant(module: &SpirvModule, id: u32, name: &str) -> Option<BlockScalar> {
        let (ty, _) = module.constants.get(&id)?;
        let (kind, bytes) = scalar_kind(module, *ty)?;
        Some(BlockScalar { offset: 0, bytes, name: name.to_owned(), kind })
    }

    /// Returns the bytes of a number; `None` if the text is not a number of this kind.
    pub fn parse(&self, text: &str) -> Option<Vec<u8>> {
        let bits = match self.kind {
            InputKind::Float(64) => text.parse::<f64>().ok()?.to_bits(),
            InputKind::Float(32) => u64::from(text.parse::<f32>().ok()?.to_bits()),
            InputKind::Float(16) => u64::from(spirv_reader::to_half_bits(text.parse().ok()?)),
            InputKind::Boolean if text == "true" => 1,
            InputKind::Boolean if text == "false" => 0,
            InputKind::Integer
            | InputKind::Float(_)
            | InputKind::Boolean
            | InputKind::Address
            | InputKind::Other => parse_integer(text, 8 * self.bytes)?,
        };
        bits.to_le_bytes().get(..self.bytes as usize).map(<[u8]>::to_vec)
    }
}

/// Returns the scalars of the push constants, by offset, then those of buffers with their set and binding.
///
/// # Errors
/// If the types of a variable are malformed.
pub fn block_scalars(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
) -> Result<Vec<(Option<SetBinding>, BlockScalar)>, Problem> {
    let mut all = Vec::new();
    for (id, variable) in &module.variables {
        let decorations = module.decorations_of(*id);
        let at = match (variable.class, decorations.binding) {
            (StorageClass::PushConstant, _) => None,
            (StorageClass::StorageBuffer | StorageClass::Uniform, Some(binding)) => {
                Some((decorations.set.unwrap_or(0), binding))
            }
            _ => continue,
        };
        let block = if module.is_unnamed(*id) { String::new() } else { module.display_name(*id) };
        let ty = if at.is_some() { module.element_type(variable.ty) } else { variable.ty };
        let mut scalars = Vec::new();
        add_scalars(specialized, ty, 0, &block, 0, &mut scalars)?;
        name_arguments(module, None, at, &mut scalars);
        all.extend(scalars.into_iter().map(|scalar| (at, scalar)));
    }
    all.sort_by_key(|(at, scalar)| (*at, scalar.offset));
    Ok(all)
}

fn scalar_kind(module: &SpirvModule, ty: u32) -> Option<(InputKind, u32)> {
    Some(match module.types.get(&ty)? {
        SpirvType::Bool => (InputKind::Boolean, 4),
        SpirvType::Integer { bits, .. } => (InputKind::Integer, bits.div_ceil(8)),
        SpirvType::Float { bits } => (InputKind::Float(*bits), bits.div_ceil(8)),
        SpirvType::Pointer { class: StorageClass::PhysicalStorageBuffer, .. } => (InputKind::Address, 8),
        _ => return None,
    })
}

/// Adds the scalars of a block outside of long and runtime arrays.
fn add_scalars(
    specialized: &Specialized<'_>,
    ty: u32,
    offset: u64,
    name: &str,
    depth: u32,
    all: &mut Vec<BlockScalar>,
) -> Result<(), Problem> {
    let module = specialized.module;
    if let Some((kind, bytes)) = scalar_kind(module, ty) {
        all.push(BlockScalar { offset, bytes, name: name.to_owned(), kind });
        return Ok(());
    }
    let members = match module.types.get(&ty) {
        Some(SpirvType::Struct { members }) => members.len(),
        // The elements of a runtime array count among the contents of the buffer.
        Some(SpirvType::RuntimeArray { .. }) | None => return Ok(()),
        Some(_) => specialized.part_count(ty).unwrap_or(0),
    };
    if depth > MAX_DEPTH || members > MAX_SCALARS {
        return Ok(());
    }
    let is_struct = matches!(module.types.get(&ty), Some(SpirvType::Struct { .. }));
    let is_vector = matches!(module.types.get(&ty), Some(SpirvType::Vector { .. }));
    for index in 0..members as u64 {
        if all.len() >= MAX_SCALARS {
            break;
        }
        let part = specialized.part_of(ty, index)?;
        let own = match module.member_names.get(&(ty, index as u32)) {
            Some(member) if is_struct && name.is_empty() => member.clone(),
            Some(member) if is_struct => format!("{name}.{member}"),
            // Compilers wrap a variable in a struct to make a block.
            None if is_struct && members == 1 && !name.is_empty() => name.to_owned(),
            _ if is_vector => format!("{name}.{}", ["x", "y", "z", "w"][(index as usize).min(3)]),
            _ => format!("{name}[{index}]"),
        };
        add_scalars(specialized, part.ty, offset + part.offset, &own, depth + 1, all)?;
    }
    Ok(())
}

/// Returns the kind of the elements of a block's last array: floats if it holds any.
fn element_kind(specialized: &Specialized<'_>, ty: u32, depth: u32) -> InputKind {
    let module = specialized.module;
    if let Some((kind, _)) = scalar_kind(module, ty) {
        return kind;
    }
    if depth > MAX_DEPTH {
        return InputKind::Other;
    }
    let inner = |ty: &u32| element_kind(specialized, *ty, depth + 1);
    match module.types.get(&ty) {
        Some(SpirvType::Vector { element, .. } | SpirvType::Array { element, .. }) => inner(element),
        Some(SpirvType::RuntimeArray { element }) => inner(element),
        Some(SpirvType::Matrix { column, .. }) => inner(column),
        Some(SpirvType::Struct { members }) => {
            let kinds: Vec<InputKind> = members.iter().map(inner).collect();
            let last = kinds.last().copied().unwrap_or(InputKind::Other);
            let integers = kinds.contains(&InputKind::Integer);
            if integers && depth > 0 { InputKind::Integer } else { last }
        }
        _ => InputKind::Other,
    }
}

pub fn ends_in_runtime_array(module: &SpirvModule, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(SpirvType::RuntimeArray { .. }) => true,
        Some(SpirvType::Struct { members }) => {
            members.last().is_some_and(|last| ends_in_runtime_array(module, *last))
        }
        _ => false,
    }
}

/// Returns the functions that an entry point executes.
pub fn reachable_functions(module: &SpirvModule, function: u32) -> impl Iterator<Item = &SpirvFunction> {
    called_functions(module, function).into_iter().filter_map(|id| module.functions.get(&id))
}

/// Returns the ids that the code of an entry point refers to.
fn used_ids(module: &SpirvModule, function: u32) -> HashSet<u32> {
    reachable_functions(module, function)
        .flat_map(|function| &function.code)
        .flat_map(|one| module.operands_of(one).iter().copied())
        .collect()
}

/// Returns the buffers that an entry point accesses atomically.
pub fn atomic_bindings(module: &SpirvModule, function: u32) -> HashSet<SetBinding> {
    atomic_members(module, function).into_iter().map(|(at, _)| at).collect()
}

/// The initial contents of memory in usual programs, other than zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartValue {
    /// The largest unsigned number.
    Largest,
    /// The number of elements or of users.
    Count,
}

/// Returns the members of buffers that atomics change in one direction only, with their usual initial contents.
///
/// Plain accesses do not count.
pub fn start_values(module: &SpirvModule, function: u32) -> HashMap<(SetBinding, Option<u64>), StartValue> {
    let mut all: HashMap<(SetBinding, Option<u64>), Option<StartValue>> = HashMap::new();
    for function in reachable_functions(module, function) {
        let roots = PointerRoots::from_function(module, function);
        for instruction in &function.code {
            let SpirvOperation::Atomic(access) = module.operation(instruction) else { continue };
            let number = access.kind.value().and_then(|id| {
                let (_, SpirvConstant::Scalar(bits)) = module.constants.get(&id)? else { return None };
                Some(*bits)
            });
            let value = match access.kind {
                AtomicKind::Load | AtomicKind::Store { .. } => continue,
                AtomicKind::Update { function, value } => match (function, value, number) {
                    (AtomicFunction::Min, ..) => Some(StartValue::Largest),
                    // A way to read.
                    (AtomicFunction::Add | AtomicFunction::Or | AtomicFunction::Max, _, Some(0)) => continue,
                    (AtomicFunction::Add, _, Some(0xffff_ffff))
                    | (AtomicFunction::Subtract, None, _)
                    | (AtomicFunction::Subtract, _, Some(1)) => Some(StartValue::Count),
                    _ => None,
                },
                AtomicKind::Exchange { .. } | AtomicKind::CompareExchange { .. } => None,
            };
            let (variable, member) = roots.find_root(access.pointer);
            if let Some(at) = binding_of(module, variable) {
                let known = all.entry((at, member)).or_insert(value);
                *known = known.filter(|known| value == Some(*known));
            }
        }
    }
    all.into_iter().filter_map(|(at, value)| Some((at, value?))).collect()
}

/// Returns the members of buffers that an entry point accesses atomically; `None` if the member is unknown.
pub fn atomic_members(module: &SpirvModule, function: u32) -> HashSet<(SetBinding, Option<u64>)> {
    let mut all = HashSet::new();
    for function in reachable_functions(module, function) {
        let roots = PointerRoots::from_function(module, function);
        for instruction in &function.code {
            if let SpirvOperation::Atomic(access) = module.operation(instruction) {
                let (variable, member) = roots.find_root(access.pointer);
                all.extend(binding_of(module, variable).map(|at| (at, member)));
            }
        }
    }
    all
}

/// Returns true if an entry point accesses atomically memory that an address points to.
pub fn has_atomic_pointees(module: &SpirvModule, function: u32) -> bool {
    reachable_functions(module, function).any(|function| {
        function.code.iter().any(|one| {
            let SpirvOperation::Atomic(access) = module.operation(one) else { return false };
            let ty = function.types.get(&access.pointer).and_then(|ty| module.types.get(ty));
            matches!(ty, Some(SpirvType::Pointer { class: StorageClass::PhysicalStorageBuffer, .. }))
        })
    })
}

/// Returns the buffers that an entry point writes, each with the member of its block, or `None` if the member is
/// unknown. Atomics count if `atomically`.
///
/// A pointer that is passed to a function counts as written.
pub fn written_members(
    module: &SpirvModule,
    function: u32,
    atomically: bool,
) -> HashSet<(SetBinding, Option<u64>)> {
    accessed_members(module, function, |access| access.writes, atomically)
}

/// Returns the resources that an entry point accesses other than by atomic operations.
///
/// A pointer that is passed to a function counts.
pub fn plain_bindings(module: &SpirvModule, function: u32) -> HashSet<SetBinding> {
    accessed_members(module, function, |_| true, false).into_iter().map(|(at, _)| at).collect()
}

fn accessed_members(
    module: &SpirvModule,
    function: u32,
    is_counted: impl Fn(&PointerAccess) -> bool,
    atomically: bool,
) -> HashSet<(SetBinding, Option<u64>)> {
    let mut all = HashSet::new();
    for function in reachable_functions(module, function) {
        let roots = PointerRoots::from_function(module, function);
        for instruction in &function.code {
            let operation = module.operation(instruction);
            let pointers = match operation.memory_effect() {
                MemoryEffect::Access(accesses) => {
                    let counted = accesses.into_iter().flatten().filter(&is_counted);
                    counted.map(|access| access.pointer).collect()
                }
                MemoryEffect::Atomic(access) if atomically && access.kind.writes() => vec![access.pointer],
                MemoryEffect::Unknown => match operation {
                    SpirvOperation::Call { arguments, .. } => arguments.to_vec(),
                    _ => Vec::new(),
                },
                MemoryEffect::None
                | MemoryEffect::Texel { .. }
                | MemoryEffect::Atomic(_)
                | MemoryEffect::Barrier { .. }
                | MemoryEffect::Interlock => Vec::new(),
            };
            for pointer in pointers {
                let (variable, member) = roots.find_root(pointer);
                all.extend(binding_of(module, variable).map(|at| (at, member)));
            }
        }
    }
    all
}

fn binding_of(module: &SpirvModule, variable: u32) -> Option<SetBinding> {
    let decorations = module.decorations_of(variable);
    decorations.binding.map(|binding| (decorations.set.unwrap_or(0), binding))
}

/// The access chains of a function.
struct PointerRoots<'m> {
    module: &'m SpirvModule,
    /// The base of each chain, and its first index.
    chains: HashMap<u32, (u32, Option<u32>)>,
}

impl PointerRoots<'_> {
    fn from_function<'m>(module: &'m SpirvModule, function: &SpirvFunction) -> PointerRoots<'m> {
        let chain = |instruction: &SpirvInstruction| match module.operation(instruction) {
            SpirvOperation::AccessChain { base, element: None, indices } => {
                Some((instruction.result, (base, indices.first().copied())))
            }
            SpirvOperation::Copy { value } => Some((instruction.result, (value, None))),
            _ => None,
        };
        PointerRoots { module, chains: function.code.iter().filter_map(chain).collect() }
    }

    /// Returns the id that a chain of pointers starts at, and the first index if it is the member of a block.
    fn find_root(&self, mut pointer: u32) -> (u32, Option<u64>) {
        let mut first = None;
        while let Some((base, index)) = self.chains.get(&pointer) {
            // From the pointer towards the variable: the index found last is the first one of the
            // whole path.
            (pointer, first) = (*base, index.or(first));
        }
        let is_block = self.module.variables.get(&pointer).is_some_and(|variable| {
            matches!(self.module.types.get(&variable.ty), Some(SpirvType::Struct { .. }))
        });
        let member = first.filter(|_| is_block).and_then(|id| match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number),
            _ => None,
        });
        (pointer, member)
    }
}
