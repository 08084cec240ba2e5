//! The inputs that an answer needs and that no option supplies, and the choice of values for them.

use spirv_reader::SpirvModule;

use crate::grid::{Blocked, NeededInput, line_ranges};
use crate::input_place::{AssumedInput, InputPlace};
use crate::options::AnalysisOptions;

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
    let mut all: Vec<NeededInput> = Vec::new();
    let add = |all: &mut Vec<NeededInput>, input: &AssumedInput, lines: String| match all
        .iter_mut()
        .find(|one| one.name == input.name)
    {
        Some(known) if known.lines.is_empty() => known.lines = lines,
        Some(_) => {}
        None => all.push(NeededInput {
            name: input.name.clone(),
            value: input.describe_value(options),
            option: input.example_option(),
            lines,
            is_contents: match input.place {
                _ if input.is_contents() && input.address_target().is_some() => true,
                InputPlace::Contents(at) | InputPlace::Scalar(at, ..) => is_storage_buffer(module, at),
                _ => false,
            },
        }),
    };
    for (index, input) in options.assumed.iter().enumerate() {
        let blocked = blocked.iter().filter(|blocked| blocked.inputs.contains(&index));
        let lines: std::collections::BTreeSet<u32> =
            blocked.flat_map(|blocked| blocked.lines.iter().copied()).collect();
        if !lines.is_empty() {
            add(
                &mut all,
                input,
                line_ranges(module, &lines).unwrap_or_else(|| "code without line numbers".to_owned()),
            );
        }
        if dependent.contains(&index) {
            add(&mut all, input, String::new());
        }
    }
    if all.is_empty() {
        // A branch that an input decided led to the finding.
        for input in options.assumed.iter().filter(|input| is_numeric_input(input) && by_branches) {
            add(&mut all, input, String::new());
        }
    }
    all
}

/// Returns the specialization constants whose values were chosen.
pub(crate) fn chosen_constants(
    module: &SpirvModule,
    given: &AnalysisOptions,
    chosen: &AnalysisOptions,
) -> Vec<NeededInput> {
    let mut all: Vec<(&u32, &u64)> =
        chosen.specialization.iter().filter(|(id, _)| !given.specialization.contains_key(id)).collect();
    all.sort_unstable();
    let name = |id: u32| {
        let decorated = module.decorations.iter().filter(|(_, own)| own.specialization == Some(id));
        decorated.map(|(result, _)| module.display_name(*result)).min().unwrap_or_default()
    };
    all.into_iter()
        .map(|(id, value)| {
            NeededInput::for_finding(name(*id), value.to_string(), format!("--spec {id}=VALUE"))
        })
        .collect()
}

fn is_numeric_input(input: &AssumedInput) -> bool {
    matches!(input.place, InputPlace::Push(..) | InputPlace::Scalar(..) | InputPlace::Constant(_))
}

/// Upper bound on the inputs that a line lists.
const MAX_LISTED: usize = 12;
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
    let mut constants: Vec<(&u32, &u64)> = chosen
        .specialization
        .iter()
        .filter(|(id, value)| given.specialization.get(id) != Some(value))
        .collect();
    constants.sort_unstable();
    all.extend(constants.iter().map(|(id, value)| format!("--spec {id}={value}")));
    all
}

/// Lists the chosen inputs that are not zeros or defaults.
pub(crate) fn list_choice(given: &AnalysisOptions, chosen: &AnalysisOptions) -> Vec<String> {
    let mut all = describe_launch(given, chosen);
    for input in &chosen.assumed {
        let value = input.describe_value(chosen);
        let default = match input.place {
            InputPlace::Push(..) | InputPlace::Scalar(..) => value == "0",
            InputPlace::Contents(_) => value == "zeros",
            InputPlace::Length(at) => chosen
                .buffers
                .get(&at)
                .is_none_or(|bytes| bytes.len() as u64 == crate::options::DEFAULT_BYTES),
            InputPlace::Image(at) => !chosen.images.contains_key(&at),
            InputPlace::Constant(_)
            | InputPlace::Override(_)
            | InputPlace::RayQueries
            | InputPlace::Launch(_) => true,
        };
        if !default {
            all.push(format!("{} = {value}", input.name));
        }
    }
    let more = all.len().saturating_sub(MAX_LISTED);
    all.truncate(MAX_LISTED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all
}
