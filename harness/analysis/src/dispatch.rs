//! A kernel as a device executes it: unchanged words, with constants, features and buffer contents.

mod image;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use arithmetic::Instruction;
use rspirv::spirv::{Capability, ExecutionMode, GlslStd450Op, Op, StorageClass};
use spirv_reader::{
    HEADER_WORDS, SourcePosition, Specialized, SpirvConstant, SpirvModule, SpirvOperation, SpirvType, Stage,
    SubgroupFunction, annotations::Annotations, scope_from_word,
};
use vocabulary::{Feature, Scope};

use crate::atomic_features::{AtomicFeature, atomic_feature, clock_feature};
use entry_point::inputs::{DEFAULT_BYTES, Sampler};
use entry_point::layout::{is_descriptor_array, local_size_of};
use entry_point::{AnalysisOptions, Problem, Refusal, malformed, unsupported};
use image::{build_image, given_sampler, has_rounded_texels};

pub use image::{DispatchImage, ImageDimensions, TexelAccess};

/// Upper bound on the elements of a buffer array.
const MAX_ELEMENTS: u64 = 64;
/// Upper bound on the size of all buffers.
const MAX_BYTES: u64 = 1 << 26;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchBuffer {
    pub set: u32,
    pub binding: u32,
    /// The element of a buffer array; else 0.
    pub element: u32,
    /// True for a uniform buffer or a sampled image, which are read-only.
    pub is_uniform: bool,
    pub name: String,
    /// The initial content, in whole words.
    pub bytes: Vec<u8>,
    /// The shape of an image, whose packed texels are the bytes.
    pub image: Option<DispatchImage>,
}

/// A kernel with everything that a device needs to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDispatch {
    /// The name of the entry point.
    pub entry: String,
    /// The words of the module, unchanged.
    pub words: Vec<u32>,
    pub grid: [u32; 3],
    /// Invocations per workgroup, by axis.
    pub local_size: [u32; 3],
    /// Given specialization constants: id and bytes.
    pub constants: Vec<(u32, Vec<u8>)>,
    pub push: Vec<u8>,
    /// The buffers by set, binding and element.
    pub buffers: Vec<DispatchBuffer>,
    /// Set and binding of each sampler, with its state.
    pub samplers: Vec<((u32, u32), Sampler)>,
    /// Required Vulkan features; one name of each group suffices.
    pub required_features: Vec<Vec<Feature>>,
    /// Capabilities without a known feature.
    pub unknown_capabilities: Vec<String>,
    /// Size of workgroup memory.
    pub workgroup_bytes: u64,
    /// True if it has loops, which a faulty device may leave early.
    pub has_loops: bool,
    /// True if it computes, compares or converts floats, which devices may round differently.
    pub uses_floats: bool,
    /// Another reason why devices may differ.
    pub variation_reason: Option<&'static str>,
    /// Assumptions to report.
    pub notes: Vec<String>,
}

impl KernelDispatch {
    /// Requires one of several features.
    fn require_feature(&mut self, features: &[Feature]) {
        if !self.required_features.iter().any(|known| known == features) {
            self.required_features.push(features.to_vec());
        }
    }
}

/// Returns the device requirements of a kernel with its inputs.
///
/// # Errors
/// Returns the position of an unsupported instruction or type.
pub fn plan_dispatch(module: &SpirvModule, options: &AnalysisOptions) -> Result<KernelDispatch, Refusal> {
    build_dispatch(module, options).map_err(|problem| problem.located_at(SourcePosition::Module))
}

fn build_dispatch(module: &SpirvModule, options: &AnalysisOptions) -> Result<KernelDispatch, Problem> {
    if module.annotations != Annotations::default() {
        return Err(unsupported(
            "annotations in SPIR-V text: pass the inputs of a dispatch on the command line or in a case \
             file",
        ));
    }
    let entry = module.find_entry(options.entry.as_deref()).map_err(|error| error.what)?;
    if entry.shader_stage() != Stage::Compute {
        let what =
            format!("`{}` has the stage {:?}; use `check`, `race` or `lint` for it", entry.name, entry.model);
        return Err(Problem::EntryPoint(format!("only compute shaders can be dispatched: {what}")));
    }
    let (function, name) = (entry.function, entry.name.clone());
    let (by_id, by_result) = (&options.specialization, HashMap::new());
    let local_size = local_size_of(module, by_id, &by_result, function)?;
    let specialized = Specialized::new(module, by_id, &by_result, Some(local_size))?;
    if !options.addresses.is_empty() {
        return Err(unsupported("dispatching buffers that are accessed by device address"));
    }
    let mut all = KernelDispatch {
        entry: name,
        words: module.words().to_vec(),
        grid: options.grid.unwrap_or([1, 1, 1]),
        local_size,
        constants: Vec::new(),
        push: Vec::new(),
        buffers: Vec::new(),
        samplers: Vec::new(),
        required_features: Vec::new(),
        unknown_capabilities: Vec::new(),
        workgroup_bytes: 0,
        has_loops: false,
        uses_floats: false,
        variation_reason: None,
        notes: Vec::new(),
    };
    if all.grid.contains(&0) {
        return Err(Problem::Input("a grid without workgroups".to_owned()));
    }
    if local_size.contains(&0) {
        return Err(Problem::Input("a workgroup without invocations".to_owned()));
    }
    let used = collect_used_variables(module, function, &mut all)?;
    add_constants(module, by_id, &mut all)?;
    add_capability_features(module, &mut all);
    // The workgroup size is set by `LocalSizeId`, which maintenance4 allows.
    if module.declared_local_size(function).is_some_and(|(_, by_ids)| by_ids) {
        all.require_feature(&[Feature::Maintenance4]);
    }
    for mode in module.execution_modes(function) {
        match mode {
            ExecutionMode::SubgroupUniformControlFlowKHR => {
                all.require_feature(&[Feature::ShaderSubgroupUniformControlFlow]);
            }
            ExecutionMode::MaximallyReconvergesKHR => {
                all.require_feature(&[Feature::ShaderMaximalReconvergence]);
            }
            // The features of others come from their capabilities.
            _ => {}
        }
    }
    let mut places: BTreeMap<(u32, u32, u32), DispatchBuffer> = BTreeMap::new();
    let mut bytes = 0_u64;
    let mut pushed = 0;
    for (id, variable) in module.variables.iter().filter(|(id, _)| used.contains(id)) {
        match variable.class {
            StorageClass::StorageBuffer | StorageClass::Uniform => {
                add_buffers(&specialized, options, *id, &mut places, &mut bytes, &mut all.notes)?;
            }
            StorageClass::PushConstant => {
                pushed = pushed.max(specialized.size_of(variable.ty)?);
                if options.push.is_empty() {
                    all.notes.push("push constants are not given: zeros assumed".to_owned());
                }
            }
            StorageClass::Workgroup => {
                all.workgroup_bytes = all.workgroup_bytes.saturating_add(specialized.size_of(variable.ty)?);
            }
            StorageClass::UniformConstant => {
                all.uses_floats |= has_rounded_texels(module, variable.ty);
                if matches!(module.types.get(&variable.ty), Some(SpirvType::Handle(Op::TypeSampler))) {
                    all.samplers.push(given_sampler(module, options, *id)?);
                } else {
                    let image = build_image(module, options, *id, &mut all.notes)?;
                    places.insert((image.set, image.binding, 0), image);
                }
            }
            StorageClass::Input | StorageClass::Output | StorageClass::Private => {}
            class => {
                return Err(unsupported(format!(
                    "dispatching `{}` of storage class {class:?}",
                    module.display_name(*id)
                )));
            }
        }
    }
    // Vulkan requires that push constants are whole words.
    all.push = vec![0; pushed.next_multiple_of(4) as usize];
    for (at, byte) in &options.push {
        if let Some(place) = usize::try_from(*at).ok().and_then(|at| all.push.get_mut(at)) {
            *place = *byte;
        }
    }
    all.buffers = places.into_values().collect();
    Ok(all)
}

/// Returns the global variables of an entry point, and records properties of its code.
fn collect_used_variables(
    module: &SpirvModule,
    function: u32,
    all: &mut KernelDispatch,
) -> Result<BTreeSet<u32>, Problem> {
    let (mut visited, mut worklist) = (BTreeSet::from([function]), vec![function]);
    let mut used = BTreeSet::new();
    while let Some(function) = worklist.pop() {
        let Some(function) = module.functions.get(&function) else { continue };
        for (at, instruction) in function.code.iter().enumerate() {
            let operands = module.operands_of(instruction);
            let operation = module.operation(instruction);
            if let SpirvOperation::Call { function, .. } = operation
                && visited.insert(function)
            {
                worklist.push(function);
            }
            let is_back = |label| function.labels.get(&label).is_some_and(|position| *position <= at);
            all.has_loops |= module.successors(&function.types, instruction).any(is_back);
            // Moving a float does not round it.
            all.uses_floats |= is_float(module, instruction.ty)
                && !matches!(instruction.op, Op::Load | Op::CopyObject | Op::Image | Op::ImageRead)
                || depends_on_rounding(&operation);
            if matches!(operation, SpirvOperation::Subgroup(_) | SpirvOperation::BallotQuery { .. })
                && needs_extended_types(module, instruction.ty)
            {
                all.require_feature(&[Feature::ShaderSubgroupExtendedTypes]);
            }
            match atomic_feature(module, function, instruction) {
                AtomicFeature::Core => {}
                AtomicFeature::Feature(name) => all.require_feature(&[name]),
                AtomicFeature::Missing => {
                    let what = format!(
                        "Op{:?} of this type on an image (Vulkan has no feature for it)",
                        instruction.op
                    );
                    return Err(unsupported(what));
                }
            }
            if let SpirvOperation::ReadClock { scope } = operation
                && let Some(name) = clock_feature(module, scope)
            {
                all.require_feature(&[name]);
            }
            if let SpirvOperation::Subgroup(subgroup) = operation
                && matches!(subgroup.function, SubgroupFunction::Rotate { cluster: Some(_) })
            {
                all.require_feature(&[Feature::ShaderSubgroupRotateClustered]);
            }
            if matches!(instruction.op, Op::SRem | Op::SMod) {
                // "Precision and Operation of SPIR-V Instructions": the result is undefined for a negative
                // operand.
                all.variation_reason =
                    Some("a signed remainder (undefined in Vulkan if an operand is negative)");
            }
            used.extend(operands.iter().filter(|id| module.variables.contains_key(id)));
        }
    }
    Ok(used)
}

/// Returns true if an instruction's result depends on how floats were rounded.
fn depends_on_rounding(operation: &SpirvOperation<'_>) -> bool {
    let SpirvOperation::Compute { instruction, .. } = operation else {
        return matches!(operation, SpirvOperation::ComputeAndStore { .. });
    };
    match instruction {
        Instruction::Extended(op) => {
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
            !integers.contains(op)
        }
        Instruction::Core(Op::ConvertFToU | Op::ConvertFToS | Op::QuantizeToF16 | Op::IsNan | Op::IsInf) => {
            true
        }
        // OpFOrdEqual to OpFUnordGreaterThanEqual.
        Instruction::Core(op) => matches!(*op as u32, 180..=191),
        Instruction::Unpack(_) | Instruction::Pack(_) => false,
    }
}

/// Returns true if subgroup operations on a type need a separate feature (VUID-RuntimeSpirv-None-06275).
fn needs_extended_types(module: &SpirvModule, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(SpirvType::Integer { bits, .. }) => *bits != 32,
        Some(SpirvType::Float { bits }) => *bits == 16,
        Some(SpirvType::Vector { element, .. }) => needs_extended_types(module, *element),
        _ => false,
    }
}

/// Returns true for float types.
fn is_float(module: &SpirvModule, ty: u32) -> bool {
    match module.types.get(&ty) {
        Some(SpirvType::Float { .. } | SpirvType::Matrix { .. }) => true,
        Some(SpirvType::Vector { element, .. }) => {
            matches!(module.types.get(element), Some(SpirvType::Float { .. }))
        }
        _ => false,
    }
}

fn add_constants(
    module: &SpirvModule,
    by_id: &HashMap<u32, u64>,
    all: &mut KernelDispatch,
) -> Result<(), Problem> {
    let mut given: Vec<(&u32, &u64)> = by_id.iter().collect();
    given.sort_unstable();
    for (id, value) in given {
        let decorated = module.decorations.iter().find(|(_, known)| known.specialization == Some(*id));
        let Some((ty, SpirvConstant::Scalar(_))) =
            decorated.and_then(|(result, _)| module.constants.get(result))
        else {
            all.notes.push(format!("no specialization constant has the id {id}"));
            continue;
        };
        let bytes = match module.type_of_id(*ty)? {
            SpirvType::Integer { bits, .. } | SpirvType::Float { bits } => bits.div_ceil(8) as usize,
            // `VkBool32`.
            _ => 4,
        };
        let value = value.to_le_bytes();
        let value =
            value.get(..bytes).ok_or_else(|| malformed("a specialization constant of more than 8 bytes"))?;
        all.constants.push((*id, value.to_vec()));
    }
    Ok(())
}

/// Adds the buffers at a variable's binding, unless they exist.
fn add_buffers(
    specialized: &Specialized<'_>,
    options: &AnalysisOptions,
    id: u32,
    places: &mut BTreeMap<(u32, u32, u32), DispatchBuffer>,
    all: &mut u64,
    notes: &mut Vec<String>,
) -> Result<(), Problem> {
    let module = specialized.module;
    let Some(variable) = module.variables.get(&id) else { return Ok(()) };
    let decorations = module.decorations_of(id);
    let (set, binding) = (decorations.set.unwrap_or(0), decorations.binding);
    let mut name = module.display_name(id);
    let binding = binding.ok_or_else(|| unsupported(format!("`{name}` without a binding")))?;
    let (mut ty, mut count, mut is_array) = (variable.ty, 1, false);
    if is_descriptor_array(module, id, ty) {
        count = match module.type_of_id(ty)? {
            SpirvType::Array { length, .. } => specialized.array_length(*length)?,
            _ => {
                return Err(unsupported(format!(
                    "dispatching `{name}`, an array of buffers without a length"
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
    // With `BufferBlock` in place of `Block`, the class means a storage buffer.
    let uniform = variable.class == StorageClass::Uniform && module.decorations_of(ty).block;
    let size = specialized.size_of(ty)?;
    for element in 0..count as u32 {
        let own = options.buffer_elements.get(&(set, binding, element));
        let given = own.or_else(|| options.buffers.get(&(set, binding)));
        let bytes = match given {
            Some(bytes) if ends_in_runtime_array(specialized, ty) => (bytes.len() as u64).max(size),
            None if ends_in_runtime_array(specialized, ty) => {
                if !places.contains_key(&(set, binding, element)) {
                    notes.push(format!("`{name}` is not given: 64 KiB of zeros assumed"));
                }
                DEFAULT_BYTES.max(size)
            }
            // Bytes beyond a type of fixed size are never accessed.
            Some(_) | None => size,
        };
        let bytes = bytes.max(4).next_multiple_of(4);
        *all = all.saturating_add(bytes);
        if *all > MAX_BYTES {
            return Err(Problem::Budget { what: "bytes of buffers", bound: MAX_BYTES as usize });
        }
        let mut contents = given.map_or(Vec::new(), |given| given.to_vec());
        contents.resize(bytes as usize, 0);
        let name = if is_array { format!("{name}[{element}]") } else { name.clone() };
        let buffer =
            DispatchBuffer { set, binding, element, is_uniform: uniform, name, bytes: contents, image: None };
        match places.get_mut(&(set, binding, element)) {
            // Variables with the same binding share the largest buffer.
            Some(known) if known.bytes.len() >= buffer.bytes.len() => known.is_uniform &= uniform,
            Some(known) => *known = DispatchBuffer { is_uniform: known.is_uniform && uniform, ..buffer },
            None => {
                places.insert((set, binding, element), buffer);
            }
        }
    }
    Ok(())
}

/// Returns true if a type ends in a runtime array.
fn ends_in_runtime_array(specialized: &Specialized<'_>, ty: u32) -> bool {
    match specialized.module.types.get(&ty) {
        Some(SpirvType::RuntimeArray { .. }) => true,
        Some(SpirvType::Struct { members }) => {
            members.last().is_some_and(|member| ends_in_runtime_array(specialized, *member))
        }
        _ => false,
    }
}

/// The requirements of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CapabilityRule {
    /// The features of which one allows the declaration; empty if every device has it, `None` if none of ours does.
    features: Option<Vec<Feature>>,
    /// True for capabilities of subgroup operations or sizes.
    is_of_subgroups: bool,
}

/// The rules of `capabilities.tsv`, by the number of the capability.
static CAPABILITIES: LazyLock<HashMap<u32, CapabilityRule>> = LazyLock::new(|| {
    let rules = parse_capabilities(include_str!("../data/capabilities.tsv"));
    #[expect(clippy::expect_used, reason = "the file is a constant, which the tests read")]
    rules.expect("the rules of capabilities")
});

/// Parses the lines of `capabilities.tsv`; the error names the line.
fn parse_capabilities(text: &str) -> Result<HashMap<u32, CapabilityRule>, String> {
    let rule = |line: &str| {
        let (name, list) = line.split_once('\t')?;
        let names: Vec<&str> = list.split(' ').filter(|word| *word != "subgroup").collect();
        let features = match names[..] {
            ["unknown"] => None,
            ["core"] => Some(Vec::new()),
            _ => Some(names.into_iter().map(Feature::from_name).collect::<Option<_>>()?),
        };
        let is_of_subgroups = line.ends_with(" subgroup");
        let capability: Capability = name.parse().ok()?;
        Some((capability as u32, CapabilityRule { features, is_of_subgroups }))
    };
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(number, line)| rule(line).ok_or_else(|| format!("capabilities.tsv:{number}: {line}")))
        .collect()
}

/// Returns true if a module declares a capability of subgroup operations or sizes, or has barriers or scopes of subgroups.
pub fn uses_subgroups(module: &SpirvModule) -> bool {
    let is_subgroup = |id: u32| match module.constants.get(&id) {
        Some((_, SpirvConstant::Scalar(number))) => {
            scope_from_word(*number, module.uses_vulkan_model) == Ok(Scope::Subgroup)
        }
        _ => false,
    };
    let mut code = module.functions.values().flat_map(|function| &function.code);
    declared_capabilities(module).filter_map(|word| CAPABILITIES.get(&word)).any(|rule| rule.is_of_subgroups)
        || code.any(|instruction| {
            let operation = module.operation(instruction);
            let execution = match operation {
                SpirvOperation::ControlBarrier { execution, .. } => Some(execution),
                _ => None,
            };
            operation.memory_scope_ids().into_iter().chain(execution).any(is_subgroup)
        })
}

fn declared_capabilities(module: &SpirvModule) -> impl Iterator<Item = u32> {
    let mut rest = module.words().get(HEADER_WORDS..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first().filter(|first| **first as u16 == Op::Capability as u16)?;
        let capability = rest.get(1).copied();
        rest = rest.get((first >> 16).max(1) as usize..).unwrap_or_default();
        capability
    })
}

fn add_capability_features(module: &SpirvModule, all: &mut KernelDispatch) {
    let mut declared = BTreeSet::new();
    for capability in declared_capabilities(module) {
        let rule = CAPABILITIES.get(&capability);
        if rule.is_some_and(|rule| rule.is_of_subgroups) {
            all.variation_reason = Some("the subgroup size, or which invocations form a subgroup");
        }
        match (rule.and_then(|rule| rule.features.as_ref()), Capability::from_u32(capability)) {
            (None, None) => all.unknown_capabilities.push(format!("capability {capability}")),
            _ if !declared.insert(capability) => {}
            (None, Some(name)) => all.unknown_capabilities.push(format!("{name:?}")),
            (Some(features), _) if features.is_empty() => {}
            (Some(features), _) => all.require_feature(features),
        }
    }
}
