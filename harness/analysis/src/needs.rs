//! The inputs that an answer needs and that no option supplies, and the choice of values for them.

use std::collections::BTreeSet;

use spirv_reader::{ArgumentPlace, CodePlace, SpirvModule};

use entry_point::assumed::constant_name;
use entry_point::input_place::{AssumedInput, InputPlace, constant_option_place};
use entry_point::{AnalysisOptions, FindingCause};
use walk::{Blocked, GridFinding, NeededInput, line_ranges};

/// Returns true for a descriptor of storage buffers.
fn is_storage_buffer(module: &SpirvModule, at: (u32, u32)) -> bool {
    let ids = module.variables_at(at);
    let mut variables = ids.iter().filter_map(|id| module.variables.get(id));
    variables.any(|variable| variable.class == rspirv::spirv::StorageClass::StorageBuffer)
}

/// Returns the inputs that decide findings or keep lines from being reached.
pub(crate) fn needed_inputs(
    module: &SpirvModule,
    options: &AnalysisOptions,
    blocked: &[Blocked],
    dependent: &[usize],
    by_branches: bool,
) -> Vec<NeededInput> {
    let needed = |input: &AssumedInput, lines: &BTreeSet<CodePlace>| NeededInput {
        name: input.name.clone(),
        value: input.describe_value(options),
        option: input.example_option(&options.assumed),
        lines: line_ranges(module, lines).unwrap_or_default(),
        place: lines.first().copied(),
        finding: None,
        is_contents: match input.place {
            _ if input.is_contents() && input.address_target().is_some() => true,
            InputPlace::Contents(at) | InputPlace::Scalar(at, ..) => is_storage_buffer(module, at),
            _ => false,
        },
    };
    let mut all: Vec<NeededInput> = Vec::new();
    for (index, input) in options.assumed.iter().enumerate() {
        let blocked = blocked.iter().filter(|blocked| blocked.inputs.contains(&index));
        let lines: BTreeSet<CodePlace> = blocked.flat_map(|blocked| blocked.lines.iter().copied()).collect();
        if !lines.is_empty() || dependent.contains(&index) {
            all.push(needed(input, &lines));
        }
    }
    // A branch that an input decided led to the finding: a number, or contents if there are no numbers.
    for is_possible in [is_numeric_input, AssumedInput::is_contents] {
        if all.is_empty() && by_branches {
            let inputs = options.assumed.iter().filter(|input| is_possible(input));
            all.extend(inputs.map(|input| needed(input, &BTreeSet::new())));
        }
    }
    merge_components(all)
}

/// Merges the components of vectors, matrices and arrays, and the length of a buffer with its contents.
fn merge_components(all: Vec<NeededInput>) -> Vec<NeededInput> {
    let mut merged: Vec<NeededInput> = Vec::new();
    for needed in all {
        let whole = without_components(&needed.name).to_owned();
        match merged
            .iter_mut()
            .find(|known| without_components(&known.name) == whole && known.lines == needed.lines)
        {
            Some(known) => {
                known.is_contents |= needed.is_contents;
                if known.name != needed.name && known.value != needed.value {
                    "several values".clone_into(&mut known.value);
                }
                known.option = known.option.replace(&format!(" {}=", known.name), &format!(" {whole}="));
                known.name = whole;
            }
            None => merged.push(needed),
        }
    }
    merged
}

/// Returns a name without the components and elements at its end.
fn without_components(mut name: &str) -> &str {
    loop {
        let component = [".x", ".y", ".z", ".w"].iter().find_map(|component| name.strip_suffix(component));
        let element = || name.strip_suffix(']')?.rsplit_once('[').map(|(array, _)| array);
        match component.or_else(element) {
            Some(whole) => name = whole,
            None => return name,
        }
    }
}

/// Returns the specialization constants whose values were chosen, with a finding that they decide.
///
/// The elements of an argument in workgroup memory are an assumed size.
pub(crate) fn chosen_constants(
    module: &SpirvModule,
    given: &AnalysisOptions,
    chosen: &AnalysisOptions,
    found: Option<&GridFinding>,
) -> Vec<NeededInput> {
    let mut all: Vec<(&u32, &u64)> =
        chosen.specialization.iter().filter(|(id, _)| !given.specialization.contains_key(id)).collect();
    all.sort_unstable();
    let is_size = |id: &u32| {
        let mut arguments = module.kernel_arguments.iter();
        arguments.any(|argument| argument.place == ArgumentPlace::Workgroup(*id))
    };
    let found = found.map(|found| match found.cause {
        FindingCause::BeyondEnd if all.iter().all(|(id, _)| is_size(id)) => {
            GridFinding { cause: FindingCause::BeyondAssumedSize, ..found.clone() }
        }
        _ => found.clone(),
    });
    let needed = |(id, value): (&u32, &u64)| {
        let option = format!("--spec {}=VALUE", constant_option_place(*id, &chosen.assumed));
        let needed = NeededInput::for_finding(constant_name(module, *id), value.to_string(), option);
        NeededInput { finding: found.clone().map(Box::new), ..needed }
    };
    all.into_iter().map(needed).collect()
}

fn is_numeric_input(input: &AssumedInput) -> bool {
    matches!(input.place, InputPlace::Push(..) | InputPlace::Scalar(..) | InputPlace::Constant(_))
}

/// Upper bound on the inputs that a line lists.
const MAX_LISTED: usize = 12;
/// Components with one value from which on a line lists their whole.
const MIN_COMPONENTS: usize = 3;
/// Upper bound on the workgroups that a line lists.
const MAX_LISTED_WORKGROUPS: usize = 6;

/// Lists grid, subgroup size and specialization constants that differ from those of other options.
pub(crate) fn describe_launch(given: &AnalysisOptions, chosen: &AnalysisOptions) -> Vec<String> {
    let mut all = Vec::new();
    let mut grid = String::new();
    if let Some([x, y, z]) = chosen.grid.filter(|grid| given.grid != Some(*grid)) {
        grid = format!("--grid {x},{y},{z}");
    }
    if given.workgroups != chosen.workgroups {
        for [x, y, z] in chosen.workgroups.iter().take(MAX_LISTED_WORKGROUPS) {
            grid += &format!(" --workgroup {x},{y},{z}");
        }
        grid += if chosen.workgroups.len() > MAX_LISTED_WORKGROUPS { " …" } else { "" };
    }
    all.extend(Some(grid.trim_start().to_owned()).filter(|grid| !grid.is_empty()));
    if let Some(size) = chosen.subgroup_size.filter(|size| given.subgroup_size != Some(*size)) {
        all.push(format!("--subgroup-size {size}"));
    }
    let samplers = chosen.samplers.keys().filter(|at| !given.samplers.contains_key(at));
    all.extend(samplers.map(|at| {
        let image = chosen.assumed.iter().find(|input| input.place == InputPlace::Image(*at));
        let place =
            image.map_or_else(|| format!("{}.{}", at.0, at.1), |image| image.option_place(&chosen.assumed));
        format!("--sampler {place}=linear")
    }));
    let mut constants: Vec<(&u32, &u64)> = chosen
        .specialization
        .iter()
        .filter(|(id, value)| given.specialization.get(id) != Some(value))
        .collect();
    constants.sort_unstable();
    let constant = |(id, value): &(&u32, &u64)| {
        format!("--spec {}={value}", constant_option_place(**id, &chosen.assumed))
    };
    all.extend(constants.iter().map(constant));
    all
}

/// Lists the chosen inputs that are not zeros or defaults, and the zeros and defaults that `deciding` names.
pub(crate) fn list_choice(
    given: &AnalysisOptions,
    chosen: &AnalysisOptions,
    deciding: &BTreeSet<usize>,
) -> Vec<String> {
    let mut all = describe_launch(given, chosen);
    let mut values: Vec<(&str, &str, String)> = Vec::new();
    for (index, input) in chosen.assumed.iter().enumerate() {
        let value = input.describe_value(chosen);
        let default = match input.place {
            _ if deciding.contains(&index) && (value == "0" || value == "zeros") => false,
            InputPlace::Push(..) | InputPlace::Scalar(..) => value == "0",
            InputPlace::Contents(_) => value == "zeros",
            InputPlace::Length(at) => chosen
                .buffers
                .get(&at)
                .is_none_or(|bytes| bytes.len() as u64 == entry_point::inputs::DEFAULT_BYTES),
            InputPlace::Image(at) => !chosen.images.contains_key(&at),
            // The list starts with those that have another value.
            InputPlace::Constant(id) => chosen.specialization.contains_key(&id) || !deciding.contains(&index),
            InputPlace::Override(_) | InputPlace::RayQueries | InputPlace::Launch(_) => true,
        };
        if !default {
            values.push((without_components(&input.name), input.name.as_str(), value));
        }
    }
    // Many components with one value are listed once.
    for (index, (whole, name, value)) in values.iter().enumerate() {
        let is_same = |other: &&(&str, &str, String)| other.0 == *whole && other.2 == *value;
        match values.iter().filter(is_same).count() {
            count if count < MIN_COMPONENTS => all.push(format!("{name} = {value}")),
            _ if values[..index].iter().any(|other| is_same(&other)) => {}
            _ => all.push(format!("{whole} = {value}")),
        }
    }
    let more = all.len().saturating_sub(MAX_LISTED);
    all.truncate(MAX_LISTED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all
}
