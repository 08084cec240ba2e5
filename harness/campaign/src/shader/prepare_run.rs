//! Prepares shaders for a run: entry points with inputs, and the final contents that the model allows.

use plan::{Feature, ImageAccess, SamplerState};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use analysis::dispatch::{ImageDimensions, KernelDispatch, TexelAccess, uses_subgroups};
use analysis::outcomes::{FinalCell, FinalContents};
use analysis::{InputGrid, placed_refusal_text, source_refusal_text};
use arithmetic::{TexelFormat, TexelKind};
use entry_point::inputs::{AddressMode, Sampler};
use entry_point::{AnalysisOptions, Problem, Refusal};
use model::Model;
use results::wire::RaceVerdict;
use results::write::race::describe_need;
use runner::shader::{InputImage, InputShape, ShaderInput};
use spirv_reader::SpirvModule;

use super::shader_analysis::{EntryPoint, read_entry_points};
use super::source::{Compilation, load_all, member_names, shader_stem};
use crate::Failure;
use crate::kinds::shader::{AnalyzedShader, ContentVerdict, ExpectedContents, FinalNumber, ShaderClaim};
use crate::time_limit::stop_after;

/// Upper bound on the text of a claim in results.
const MAX_CLAIM_BYTES: usize = 400;

#[derive(Clone, Debug)]
pub struct ShaderFileInputs<'a> {
    /// The path of the file.
    pub file: &'a str,
    /// The command-line words of the inputs.
    pub flags: &'a [String],
    pub compilation: Compilation,
    /// How missing inputs are supplied.
    pub inputs: analysis::InputMode,
    pub options: &'a entry_point::AnalysisOptions,
}

/// Makes the ids of shaders unique by adding the file name.
pub fn make_ids_unique<'a>(all: impl IntoIterator<Item = &'a mut AnalyzedShader>) {
    let mut all: Vec<&mut AnalyzedShader> = all.into_iter().collect();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for shader in &all {
        *counts.entry(shader.id.clone()).or_default() += 1;
    }
    for shader in all.iter_mut().filter(|shader| counts.get(&shader.id).is_some_and(|count| *count > 1)) {
        shader.id = format!("{}:{}", shader.file, shader.shader.entry);
    }
}

/// Returns the entry points of a shader, or the one in the options, with the contents that a model allows.
/// `timeout` bounds the model.
///
/// # Errors
/// If the shader is invalid. An unsupported feature is recorded in the shader instead.
pub fn analyze_file(
    shader_file: &ShaderFileInputs<'_>,
    model: &Model,
    timeout: Duration,
) -> Result<Vec<AnalyzedShader>, Failure> {
    let mut all = Vec::new();
    for file in member_names(shader_file.file, &shader_file.compilation) {
        all.extend(analyze_member(&file, shader_file, model, timeout)?);
    }
    Ok(all)
}

fn analyze_member(
    file: &str,
    shader_file: &ShaderFileInputs<'_>,
    model: &Model,
    timeout: Duration,
) -> Result<Vec<AnalyzedShader>, Failure> {
    let to_failure = |refusal: Refusal| Failure::input_message(placed_refusal_text(file, &refusal));
    let mut all = Vec::new();
    for shader in load_all(file, &shader_file.compilation) {
        let shader = shader.map_err(|error| error.to_failure())?;
        require_whole_grid(shader_file.options, "a dispatch runs every workgroup of the grid")?;
        let (module, entries) = read_entry_points(file, &shader, shader_file.options).map_err(to_failure)?;
        let module = Arc::new(module);
        for given in &entries {
            let mode = shader_file.inputs;
            let entry_point = EntryPoint { file, source: &shader, module: &module, model, given, mode };
            let chosen = entry_point.choose_inputs(InputGrid::Whole, None).map_err(to_failure)?;
            let options = &chosen.options;
            let entry = options.entry.clone().unwrap_or_default();
            let stem = shader_stem(file);
            let id = format!("{stem}:{entry}");
            let mut analyzed = AnalyzedShader::new(id, file.to_owned(), entry);
            analyzed.flags = shader_file.flags.to_vec();
            analyzed.compiler.clone_from(&shader.compiler);
            match analysis::dispatch::plan_dispatch(&module, options) {
                Ok(dispatch)
                    if dispatch
                        .required_features
                        .iter()
                        .any(|group| group.contains(&Feature::BufferDeviceAddress)) =>
                {
                    // `plan_dispatch` refuses only addresses that are known.
                    let what = "dispatching buffers that are accessed by device address";
                    analyzed.unavailable_reason = Some(format!("not available: {what}"));
                }
                Ok(dispatch) => {
                    analyze_dispatch(&mut analyzed, dispatch, &module, options, model, timeout)
                        .map_err(to_failure)?;
                    analyzed.shader.subgroup_size = given.subgroup_size.filter(|_| uses_subgroups(&module));
                }
                // An unsupported feature is not an error of the shader.
                Err(Refusal { what: Problem::Unsupported(what), .. }) => {
                    analyzed.unavailable_reason = Some(format!("not available: {what}"));
                }
                Err(refusal) => return Err(to_failure(refusal)),
            }
            analyzed.notes.extend(chosen.choice_note());
            let has_findings = matches!(analyzed.expected, ExpectedContents::Undefined(_));
            let walked = LazyCell::new(|| {
                entry_point.is_model_of_walk().then(|| entry_point.find_races(timeout, None).line)
            });
            let has_verdict = |verdict| walked.as_ref().is_some_and(|line| line.verdict == verdict);
            analyzed.is_right_in_language = has_findings
                && has_verdict(RaceVerdict::Clean)
                && walked.as_ref().is_some_and(|line| line.module_verdict == Some(RaceVerdict::Racy));
            let needs = chosen.needed_inputs(has_findings, || has_verdict(RaceVerdict::Racy));
            if !needs.is_empty() {
                let needs: Vec<String> = needs.iter().map(describe_need).collect();
                let why = format!("needs-inputs: {}", needs.join("; "));
                analyzed.expected = ExpectedContents::Unknown { is_race_free: false, why };
            }
            all.push(analyzed);
        }
    }
    Ok(all)
}

/// Returns an error if options choose some workgroups of the grid; `why` says why these are not enough.
pub(super) fn require_whole_grid(options: &AnalysisOptions, why: &str) -> Result<(), Failure> {
    match options.workgroups.is_empty() {
        true => Ok(()),
        false => Err(Failure::input_message(format!(
            "--workgroup: {why}; expected `race`, `check`, `explain` or `convert`"
        ))),
    }
}

fn analyze_dispatch(
    analyzed: &mut AnalyzedShader,
    dispatch: KernelDispatch,
    module: &Arc<SpirvModule>,
    options: &entry_point::AnalysisOptions,
    model: &Model,
    timeout: Duration,
) -> Result<(), Refusal> {
    let writable: Vec<(u32, u32, u32)> = (dispatch.buffers.iter().filter(|buffer| !buffer.is_uniform))
        .map(|buffer| (buffer.set, buffer.binding, buffer.element))
        .collect();
    // The padding to whole words is part of the buffer that the model sees.
    let mut options = options.clone();
    for buffer in dispatch.buffers.iter().filter(|buffer| buffer.image.is_none()) {
        options.buffers.insert((buffer.set, buffer.binding), buffer.bytes.clone().into());
    }
    let buffer_index = |at: (u32, u32, u32)| {
        writable.iter().position(|descriptor| *descriptor == at).map(|number| number as u32)
    };
    if let Some(claim) = entry_point::question::resolve_claim(module, &options)? {
        let mut cells = Vec::with_capacity(claim.places.len());
        for (at, offset, bytes) in &claim.places {
            let Some(buffer) = buffer_index(*at) else {
                let what = "the assertion is about memory that a dispatch does not write for the host";
                return Err(
                    Problem::Annotation(what.to_owned()).located_at(spirv_reader::SourcePosition::Module)
                );
            };
            cells.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
        }
        name_numbers(&mut cells, &writable, module, &options)?;
        let mut text = claim.text.clone();
        if text.len() > MAX_CLAIM_BYTES {
            text = text.chars().take(MAX_CLAIM_BYTES).collect();
            text += &format!("… ({} numbers)", cells.len());
        }
        analyzed.claim = Some(ShaderClaim { text, cells, claim: Arc::new(claim) });
    }
    let stop = stop_after(timeout);
    let describe = |refusal: &Refusal| source_refusal_text(&analyzed.file, module, refusal);
    let budget = model::Budget::until(&stop);
    let finals = analysis::outcomes::final_contents(module, &dispatch, &options, model, budget, &describe);
    analyzed.expected = match finals {
        FinalContents::Undefined { reason: why, .. } => ExpectedContents::Undefined(why),
        FinalContents::Unknown { is_race_free: race_free, reason: why } => {
            ExpectedContents::Unknown { is_race_free: race_free, why }
        }
        FinalContents::Known { cells, contents } => {
            let mut known = Vec::with_capacity(cells.len());
            for FinalCell { at, offset, bytes, .. } in &cells {
                let buffer = buffer_index(*at).unwrap_or(u32::MAX);
                known.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
            }
            name_numbers(&mut known, &writable, module, &options)?;
            let to_verdict = |content: analysis::outcomes::FinalContent| ContentVerdict {
                allowed: content.is_allowed,
                weak: content.is_weak,
            };
            let contents =
                contents.into_iter().map(|(values, content)| (values, to_verdict(content))).collect();
            ExpectedContents::Known { cells: known, contents }
        }
    };
    let (module, options) = (module.clone(), options);
    analyzed.word_names = Arc::new(move |places| {
        let place = |(buffer, word): &(u32, u64)| {
            let (set, binding, element) = writable.get(*buffer as usize).copied().unwrap_or_default();
            (set, binding, element, 4 * word)
        };
        let places: Vec<_> = places.iter().map(place).collect();
        entry_point::layout::element_names(&module, &options, &places).unwrap_or_default()
    });
    device_shader(analyzed, dispatch);
    Ok(())
}

/// Stores what a device needs to dispatch a kernel.
pub(crate) fn device_shader(analyzed: &mut AnalyzedShader, dispatch: KernelDispatch) {
    let samplers: Vec<_> =
        dispatch.samplers.iter().map(|(at, sampler)| (*at, sampler_state(*sampler))).collect();
    let filters = samplers.iter().any(|(_, state)| state.is_linear);
    analyzed.buffer_names = dispatch.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    analyzed.shader = runner::shader::Shader {
        words: dispatch.words,
        entry: dispatch.entry,
        grid: dispatch.grid,
        constants: dispatch.constants,
        push: dispatch.push,
        buffers: dispatch
            .buffers
            .iter()
            .map(|buffer| {
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
                let words: Vec<u32> = buffer.bytes.chunks(4).map(word).collect();
                let image = buffer.image.map(|image| InputImage {
                    shape: match image.dimensions {
                        ImageDimensions::One => InputShape::OneDimensional,
                        ImageDimensions::Two => InputShape::TwoDimensional,
                        ImageDimensions::Layers => InputShape::Layered,
                        ImageDimensions::Three => InputShape::ThreeDimensional,
                        ImageDimensions::Buffer => InputShape::Texels,
                    },
                    size: image.size,
                    format: image.format,
                    access: match image.access {
                        TexelAccess::Storage => ImageAccess::Storage,
                        // Integers are not filtered.
                        TexelAccess::Sampled => ImageAccess::Sampled(filters && has_floats(image.format)),
                        TexelAccess::Combined(sampler) => ImageAccess::Combined(sampler_state(sampler)),
                    },
                });
                let at = [buffer.set, buffer.binding, buffer.element];
                ShaderInput { image, ..ShaderInput::new(at, buffer.is_uniform, &words) }
            })
            .collect(),
        samplers,
        subgroup_size: None,
    };
    analyzed.local_size = dispatch.local_size;
    analyzed.workgroup_bytes = dispatch.workgroup_bytes;
    analyzed.required_features = dispatch.required_features;
    analyzed.unsupported_capabilities = dispatch.unknown_capabilities;
    analyzed.has_loops = dispatch.has_loops;
    analyzed.notes = dispatch.notes;
}

fn has_floats(format: u32) -> bool {
    TexelFormat::from_spirv_format(format).is_some_and(|format| format.kind() == TexelKind::Float)
}

fn sampler_state(Sampler { is_linear, address_mode }: Sampler) -> SamplerState {
    let address_mode = match address_mode {
        AddressMode::Repeat => plan::AddressMode::Repeat,
        AddressMode::Mirror => plan::AddressMode::Mirror,
        AddressMode::Clamp => plan::AddressMode::Clamp,
    };
    SamplerState { is_linear, address_mode }
}

fn name_numbers(
    cells: &mut [FinalNumber],
    writable: &[(u32, u32, u32)],
    module: &SpirvModule,
    options: &entry_point::AnalysisOptions,
) -> Result<(), Refusal> {
    let place = |cell: &FinalNumber| {
        let (set, binding, element) = writable.get(cell.buffer as usize).copied().unwrap_or_default();
        (set, binding, element, cell.offset)
    };
    let places: Vec<_> = cells.iter().map(place).collect();
    for (cell, name) in cells.iter_mut().zip(entry_point::layout::element_names(module, options, &places)?) {
        cell.name = name;
    }
    Ok(())
}
