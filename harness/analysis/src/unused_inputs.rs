//! Detects inputs that do not belong to the shader, which are usually mistakes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arithmetic::{TexelFormat, TexelKind};
use rspirv::spirv::{ImageFormat, Op, StorageClass};
use spirv_reader::annotations::FormulaTerm;
use spirv_reader::{Specialized, SpirvModule, SpirvType};
use walk::entry_accesses;

use crate::choose::block_size;
use entry_point::assumed::{BlockScalar, block_scalars};
use entry_point::input_place::SetBinding;
use entry_point::inputs::{AddressTarget, DEFAULT_BYTES, address_offset_in};
use entry_point::layout::element_names;
use entry_point::{AnalysisOptions, Problem, Refusal};

/// The kinds of resources at a binding.
const BUFFER: &str = "a buffer";
const IMAGE: &str = "an image";
const SAMPLER: &str = "a sampler";
const COMBINED_SAMPLER: &str = "an image with a sampler";

/// Returns the unused inputs of a case file.
///
/// A case file may give everything that a program binds, and compilers remove unused resources.
///
/// # Errors
/// Fails if a command line input matches nothing, if an input has the wrong kind, or if one is missing that has to be given.
pub fn unused_inputs(module: &SpirvModule, options: &AnalysisOptions) -> Result<Vec<String>, Refusal> {
    let spare = options.case_inputs.as_deref().map(|case| absent_inputs(module, case)).unwrap_or_default();
    let mut messages = absent_inputs(module, options);
    messages.retain(|what| !spare.contains(what));
    messages.extend(mismatched_inputs(module, options));
    messages.extend(mismatched_images(module, options));
    messages.extend(absent_addresses(module, options)?);
    messages.extend(mismatched_push(module, options)?);
    if !messages.is_empty() {
        return Err(unusable(messages.join("; ")).into());
    }
    match missing_inputs(module, options)?[..] {
        [] => Ok(spare),
        ref missing => Err(Problem::Input(format!("missing input: {}", missing.join("; "))).into()),
    }
}

/// Returns options in which contents given by name are at their bindings, and push constants at their offsets.
///
/// # Errors
/// Fails if no buffer or member has the name; the error lists the names.
pub fn resolve_names(module: &SpirvModule, options: &AnalysisOptions) -> Result<AnalysisOptions, Refusal> {
    let mut resolved = AnalysisOptions { named_buffers: BTreeMap::new(), ..options.clone() };
    let mut names: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (id, variable) in &module.variables {
        let Some(descriptor) = module.descriptor_of(*id) else { continue };
        names.insert(module.display_name(*id), descriptor);
        if module.is_unnamed(*id) {
            names.insert(module.display_name(variable.ty), descriptor);
        }
    }
    let find = |what: &str, name: &String| {
        names.get(name).copied().ok_or_else(|| {
            let variables = module.variables.iter().filter(|(id, _)| module.descriptor_of(**id).is_some());
            let known: BTreeSet<&str> = variables
                .filter_map(|(id, variable)| module.source_name_of_variable(*id, variable.ty))
                .collect();
            let known = Vec::from_iter(known);
            let what =
                format!("{what} `{name}`, which the kernel does not have (it has {})", known.join(", "));
            Refusal::from(Problem::Input(format!("unusable input: {what}")))
        })
    };
    for (name, bytes) in &options.named_buffers {
        resolved.buffers.insert(find("a buffer", name)?, bytes.clone());
    }
    for (name, image) in std::mem::take(&mut resolved.named_images) {
        resolved.images.insert(find(IMAGE, &name)?, image);
    }
    for (name, sampler) in std::mem::take(&mut resolved.named_samplers) {
        resolved.samplers.insert(find(SAMPLER, &name)?, sampler);
    }
    resolve_constants(module, &mut resolved)?;
    resolve_members(module, &mut resolved)?;
    name_claimed_bytes(module, &mut resolved);
    Ok(resolved)
}

/// Names the elements that a claim of a script gives by their bytes.
fn name_claimed_bytes(module: &SpirvModule, options: &mut AnalysisOptions) {
    let Some(mut claim) = options.assertion.take() else { return };
    let mut places = Vec::new();
    claim.for_each_term(&mut |term| {
        if let FormulaTerm::Bytes { binding: (set, binding), offset, .. } = term {
            places.push((*set, *binding, 0, *offset));
        }
    });
    let names = element_names(module, options, &places).unwrap_or_default();
    let mut names = names.into_iter();
    claim.for_each_term(&mut |term| {
        if let FormulaTerm::Bytes { name, .. } = term {
            *name = names.next();
        }
    });
    options.assertion = Some(claim);
}

/// Puts the values that are given by the name of a specialization constant at its number.
fn resolve_constants(module: &SpirvModule, options: &mut AnalysisOptions) -> Result<(), Problem> {
    let numbers = module.decorations.iter().filter_map(|(id, own)| Some((*id, own.specialization?)));
    let by_name: BTreeMap<String, (u32, u32)> =
        numbers.map(|(id, number)| (module.display_name(id), (id, number))).collect();
    for (name, text) in std::mem::take(&mut options.named_constants) {
        let Some((id, number)) = by_name.get(&name) else {
            let known = by_name.iter().filter(|(_, (id, _))| module.source_name(*id).is_some());
            let known: Vec<String> = known.map(|(name, _)| name.clone()).collect();
            let what = format!("specialization constant `{name}`, which the kernel does not have");
            return Err(unusable(format!("{what} ({})", list_of_known(&known))));
        };
        let value = BlockScalar::of_constant(module, *id, &name).ok_or_else(|| unusable(name))?;
        let value = parse_scalar(&value, &text)?;
        let bits = value.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        options.specialization.insert(*number, bits);
    }
    Ok(())
}

/// Puts the numbers that are given by the name of a member at their places in push constants and buffers.
fn resolve_members(module: &SpirvModule, options: &mut AnalysisOptions) -> Result<(), Problem> {
    let named = std::mem::take(&mut options.named_members);
    if named.is_empty() {
        return Ok(());
    }
    let by_id = options.specialization.clone();
    let specialized = Specialized::new(module, &by_id, &HashMap::new(), None)?;
    let scalars = block_scalars(module, &specialized)?;
    let is_block = |class| {
        matches!(class, StorageClass::PushConstant | StorageClass::Uniform | StorageClass::StorageBuffer)
    };
    let blocks = module.variables.iter().filter(|(_, variable)| is_block(variable.class));
    let blocks: Vec<String> = blocks
        .flat_map(|(id, variable)| [module.display_name(variable.ty), module.variable_name(*id, variable.ty)])
        .collect();
    for (given, values) in named {
        // An unnamed block has the name of its type.
        let member = |block: &String| given.strip_prefix(block.as_str())?.strip_prefix('.');
        let is_known = scalars.iter().any(|(_, scalar)| scalar.name.starts_with(given.as_str()));
        let name = blocks.iter().find_map(member).filter(|_| !is_known).unwrap_or(&given);
        // The name of a member selects all scalars in it. The name of the block may be omitted.
        let is_part = |known: &str| {
            let rest = known.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let without_block = |known: &str| known.split_once('.').is_some_and(|(_, member)| is_part(member));
        let mut parts: Vec<&(Option<SetBinding>, BlockScalar)> =
            scalars.iter().filter(|(_, one)| is_part(&one.name) || without_block(&one.name)).collect();
        let list = |parts: &[&(Option<SetBinding>, BlockScalar)]| {
            let names: Vec<&str> = parts.iter().map(|(_, scalar)| scalar.name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let Some((place, _)) = parts.first() else {
            let known = list(&scalars.iter().collect::<Vec<_>>());
            return Err(unusable(format!(
                "a member `{name}`, which the kernel does not have (it has {known}); an array without a length is given with its buffer"
            )));
        };
        // Those of push constants are first.
        if place.is_some() && parts.iter().any(|(at, _)| at != place) {
            let several = list(&parts);
            return Err(unusable(format!("the member `{name}`, which several buffers have ({several})")));
        }
        parts.retain(|(at, _)| at == place);
        if parts.len() < values.len() {
            let (count, given) = (parts.len(), values.len());
            return Err(unusable(format!("{given} values for the member `{name}`, which has {count}")));
        }
        for ((place, scalar), text) in parts.into_iter().zip(values) {
            let bytes = parse_scalar(scalar, &text)?;
            let Some(at) = *place else {
                options.push.extend((scalar.offset..).zip(bytes));
                continue;
            };
            let contents = Arc::make_mut(options.buffers.entry(at).or_insert_with(|| {
                options.given_members.insert(at, BTreeMap::new());
                vec![0; block_size(module, &specialized, at).unwrap_or(DEFAULT_BYTES) as usize].into()
            }));
            let first = scalar.offset as usize;
            if let Some(range) = contents.get_mut(first..first + bytes.len()) {
                range.copy_from_slice(&bytes);
            }
            if let Some(members) = options.given_members.get_mut(&at) {
                members.insert(scalar.offset, scalar.bytes);
            }
        }
    }
    Ok(())
}

/// Returns the kinds of resources at each binding.
fn declared_bindings(module: &SpirvModule) -> BTreeMap<(u32, u32), BTreeSet<&'static str>> {
    let mut all: BTreeMap<(u32, u32), BTreeSet<&'static str>> = BTreeMap::new();
    for (id, variable) in &module.variables {
        let own = module.decorations_of(*id);
        let Some(binding) = own.binding else { continue };
        let mut ty = variable.ty;
        while let Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) =
            module.types.get(&ty)
        {
            ty = *element;
        }
        let what = match module.types.get(&ty) {
            Some(SpirvType::Handle(Op::TypeImage)) => IMAGE,
            Some(SpirvType::Handle(Op::TypeSampledImage)) => COMBINED_SAMPLER,
            Some(SpirvType::Handle(Op::TypeSampler)) => SAMPLER,
            Some(SpirvType::Handle(_)) => "no buffer, image or sampler",
            _ => BUFFER,
        };
        all.entry((own.set.unwrap_or(0), binding)).or_default().insert(what);
    }
    all
}

fn input_bindings(options: &AnalysisOptions) -> impl Iterator<Item = (&'static str, (u32, u32))> {
    let buffers = options.buffers.keys().map(|place| (BUFFER, *place));
    let images = options.images.keys().map(|place| (IMAGE, *place));
    buffers.chain(images).chain(options.samplers.keys().map(|place| (SAMPLER, *place)))
}

fn list_of_known(all: &[String]) -> String {
    if all.is_empty() { "it has none".to_owned() } else { format!("it has {}", all.join(", ")) }
}

/// Parses a number that is given by name.
fn parse_scalar(scalar: &BlockScalar, text: &str) -> Result<Vec<u8>, Problem> {
    let BlockScalar { name, bytes, .. } = scalar;
    let what = || format!("`{text}` for `{name}`; expected a {}-bit number", 8 * bytes);
    scalar.parse(text).ok_or_else(|| unusable(what()))
}

/// Returns the size of the largest block of push constants.
fn push_size(module: &SpirvModule, options: &AnalysisOptions) -> Result<Option<u64>, Problem> {
    let specialized = Specialized::new(module, &options.specialization, &HashMap::new(), None)?;
    let blocks = module.variables.values().filter(|variable| variable.class == StorageClass::PushConstant);
    let sizes = blocks.map(|block| specialized.size_of(block.ty)).collect::<Result<Vec<_>, _>>()?;
    Ok(sizes.into_iter().max())
}

/// Returns the resources and push constants that the entry point uses and that are not given, if all have to be.
fn missing_inputs(module: &SpirvModule, options: &AnalysisOptions) -> Result<Vec<String>, Problem> {
    let entry = module.find_entry(options.entry.as_deref()).ok().filter(|_| options.needs_all_inputs);
    let Some(used) = entry.and_then(|entry| entry_accesses(module, &entry.name)) else {
        return Ok(Vec::new());
    };
    let bindings = declared_bindings(module);
    let is_given = |at: &SetBinding| {
        options.buffers.contains_key(at)
            || options.images.contains_key(at)
            || options.aliases.contains_key(at)
            || !options.given_elements(*at).is_empty()
    };
    let mut missing = Vec::new();
    for at in used.resources.keys().filter(|at| !is_given(at)) {
        let kinds = bindings.get(at).into_iter().flatten();
        let Some(what) = kinds.copied().find(|kind| [BUFFER, IMAGE, COMBINED_SAMPLER].contains(kind)) else {
            continue;
        };
        let ids = module.variables_at(*at);
        let names = ids.iter().filter_map(|id| Some((*id, module.variables.get(id)?.ty)));
        let names: Vec<String> =
            names.map(|(id, ty)| format!("`{}`", module.variable_name(id, ty))).take(1).collect();
        let (set, binding) = at;
        missing.push(format!("{} at set {set}, binding {binding}; expected {what}", names.concat()));
    }
    let is_pushed = !options.push.is_empty() || !options.addresses.is_empty();
    if let (true, false, Some(size)) = (used.has_push_constants, is_pushed, push_size(module, options)?) {
        missing.push(format!("push constants; expected {size} bytes"));
    }
    Ok(missing)
}

/// Returns the images whose format or size is not that of the declaration.
fn mismatched_images(module: &SpirvModule, options: &AnalysisOptions) -> Vec<String> {
    let mut messages = Vec::new();
    for (at, image) in &options.images {
        for id in module.variables_at(*at) {
            let mut ty = module.variables.get(&id).map_or(0, |variable| variable.ty);
            let mut operands = module.handle_operands.get(&ty);
            // The operand of a combined image sampler is the image.
            if let (Some(SpirvType::Handle(Op::TypeSampledImage)), Some([inner, ..])) =
                (module.types.get(&ty), operands.map(Vec::as_slice))
            {
                ty = *inner;
                operands = module.handle_operands.get(&ty);
            }
            let Some([of, dimension, _, arrayed, _, _, declared, ..]) = operands.map(Vec::as_slice) else {
                continue;
            };
            let name = module.display_name(id);
            let (set, binding) = at;
            let dimensions = if *dimension == 0 { 1 } else { 2 };
            let is_flat = matches!(dimension, 0 | 1) && *arrayed == 0;
            if is_flat && options.needs_all_inputs && image.size[dimensions..].iter().any(|size| *size != 1) {
                messages.push(format!(
                    "an image of {:?} texels for `{name}` at set {set}, binding {binding}; expected {dimensions} dimensions, as in the shader",
                    image.size
                ));
            }
            let Some(given) = image.format else { continue };
            let format_name = |number: u32| {
                ImageFormat::from_u32(number).map(|of| format!("{of:?}").to_lowercase()).unwrap_or_default()
            };
            let (kind, expected_kind) = match module.types.get(of) {
                Some(SpirvType::Integer { signed: true, .. }) => (TexelKind::Signed, "signed integers"),
                Some(SpirvType::Integer { .. }) => (TexelKind::Unsigned, "unsigned integers"),
                _ => (TexelKind::Float, "floats"),
            };
            let expected = match declared {
                0 if TexelFormat::from_spirv_format(given).is_none_or(|given| given.kind() == kind) => {
                    continue;
                }
                0 => format!("one of {expected_kind}"),
                declared if *declared == given => continue,
                declared => format_name(*declared),
            };
            let given = format_name(given);
            messages.push(format!(
                "the format {given} for `{name}` at set {set}, binding {binding}; expected {expected}, as in the shader"
            ));
        }
    }
    messages
}

/// Returns the push constants beyond the block, without those of a case file, or too few for it.
fn mismatched_push(module: &SpirvModule, options: &AnalysisOptions) -> Result<Option<String>, Problem> {
    let of_case = options.case_inputs.as_ref().map(|case| &case.push);
    let is_given = |offset: &&u64| !of_case.is_some_and(|case| case.contains_key(offset));
    let Some(last) = options.push.keys().rev().find(is_given) else { return Ok(None) };
    let size = push_size(module, options)?;
    let is_wrong = |size: &u64| last >= size || options.needs_whole_push && last + 1 < *size;
    let message =
        |size| format!("push constants up to byte {last}; expected {size} bytes, those of their block");
    Ok(size.filter(is_wrong).map(message))
}

fn unusable(what: String) -> Problem {
    Problem::Input(format!("unusable input: {what}"))
}

/// Returns the inputs whose target does not exist.
fn absent_inputs(module: &SpirvModule, options: &AnalysisOptions) -> Vec<String> {
    let bindings = declared_bindings(module);
    let constants: BTreeSet<u32> = module.decorations.values().filter_map(|own| own.specialization).collect();
    let places = || {
        let all: Vec<String> = bindings.keys().map(|(set, binding)| format!("{set}.{binding}")).collect();
        list_of_known(&all)
    };
    let mut absent: Vec<String> = input_bindings(options)
        .filter(|(_, place)| !bindings.contains_key(place))
        .map(|(what, (set, binding))| {
            format!("{what} for {set}.{binding}, which the kernel does not have ({})", places())
        })
        .collect();
    let unbound = options.aliases.keys().filter(|from| !module.aliases().contains_key(from));
    absent.extend(unbound.map(|(set, binding)| {
        format!("an alias for {set}.{binding}, which the kernel does not have ({})", places())
    }));
    let mut unknown: Vec<&u32> = options.specialization.keys().filter(|id| !constants.contains(id)).collect();
    unknown.sort_unstable();
    let known = || list_of_known(&constants.iter().map(u32::to_string).collect::<Vec<_>>());
    absent.extend(
        unknown
            .into_iter()
            .map(|id| format!("specialization constant {id}, which the kernel does not have ({})", known())),
    );
    let has_push = module.variables.values().any(|variable| variable.class == StorageClass::PushConstant);
    if !options.push.is_empty() && !has_push {
        absent.push("push constants, but the kernel has none".to_owned());
    }
    absent
}

/// Returns the inputs whose target has another kind.
fn mismatched_inputs(module: &SpirvModule, options: &AnalysisOptions) -> Vec<String> {
    let bindings = declared_bindings(module);
    let misfit = |(what, place): (&'static str, (u32, u32))| {
        let kinds = bindings.get(&place)?;
        // A combined image sampler takes an image and a sampler as separate inputs.
        let fits = kinds.contains(what) || what != BUFFER && kinds.contains(COMBINED_SAMPLER);
        let kinds: Vec<&str> = kinds.iter().copied().collect();
        (!fits).then(|| format!("{what} for {}.{}, which is {}", place.0, place.1, kinds.join(" and ")))
    };
    input_bindings(options).filter_map(misfit).chain(mismatched_aliases(module, options)).collect()
}

/// Returns the aliases of other memory than storage buffers.
fn mismatched_aliases(module: &SpirvModule, options: &AnalysisOptions) -> Vec<String> {
    let is_buffer = |id: &u32| {
        module.variables.get(id).is_some_and(|variable| variable.class == StorageClass::StorageBuffer)
    };
    let mut messages = Vec::new();
    for (from, id) in module.aliases() {
        let Some(to) = options.aliases.get(from) else { continue };
        let aliased_variables: Vec<u32> = module.aliases().values().copied().collect();
        let target = module.variables_at(*to).into_iter().find(|id| !aliased_variables.contains(id));
        let why = match target {
            None => "which the kernel does not have",
            Some(target) if !is_buffer(id) || !is_buffer(&target) => {
                "but only storage buffers can share memory by an alias"
            }
            Some(_) => continue,
        };
        messages.push(format!("{}.{} as an alias of {}.{}, {why}", from.0, from.1, to.0, to.1));
    }
    messages
}

/// Returns the addresses whose location does not exist.
fn absent_addresses(module: &SpirvModule, options: &AnalysisOptions) -> Result<Vec<String>, Problem> {
    if options.addresses.is_empty() {
        return Ok(Vec::new());
    }
    let specialized = Specialized::new(module, &options.specialization, &HashMap::new(), None)?;
    let exists = |at: &AddressTarget| match at {
        AddressTarget::Address(name, _) => options.addresses.iter().any(|other| other.name == *name),
        _ => module.variables.keys().any(|id| address_offset_in(&specialized, *id, at).is_some()),
    };
    let absent = options.addresses.iter().filter(|address| !exists(&address.at));
    Ok(absent
        .map(|address| {
            let expected = "expected a member of the push constants, or of a buffer with a set and binding";
            format!("an address at {}, where the kernel has no variable; {expected}", address.at)
        })
        .collect())
}
