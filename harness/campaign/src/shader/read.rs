//! Prepares shaders for a run: entry points with inputs, and the final contents that the model allows.

use plan::Feature;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use answers::{needed_record, placed_refusal_text, source_refusal_text};
use frontend::{AnalysisOptions, FinalCell, FinalContents, KernelDispatch, Problem, Refusal, SpirvModule};
use model::Model;
use runner::shader::{InputImage, InputShape, ShaderInput};

use super::entries;
use super::source::{Compilation, SourceModule, load_all};
use crate::Failure;
use crate::kinds::shader::{AnalyzedShader, ContentVerdict, ExpectedContents, FinalNumber, ShaderClaim};
use crate::patience::patience;

/// A shader file with its inputs.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// The path of the file.
    pub file: &'a str,
    /// The command-line words of the inputs.
    pub flags: &'a [String],
    /// The compiler options.
    pub compilation: Compilation,
    /// How missing inputs are supplied.
    pub inputs: frontend::InputMode,
    /// The parsed inputs.
    pub options: &'a frontend::AnalysisOptions,
}

/// Makes the ids of shaders unique by adding the file name.
pub fn name_apart(all: &mut [AnalyzedShader]) {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for shader in all.iter() {
        *counts.entry(shader.id.clone()).or_default() += 1;
    }
    for shader in all.iter_mut().filter(|shader| counts.get(&shader.id).is_some_and(|count| *count > 1)) {
        shader.id = format!("{}:{}", shader.file, shader.shader.entry);
    }
}

/// Returns the entry points of a shader, or the one in the options, with the contents that a model allows.
/// `longest` is the time limit of the model.
///
/// # Errors
/// If the shader is invalid. An unsupported feature is recorded in the shader instead.
pub fn read(given: &Given<'_>, model: &Model, longest: Duration) -> Result<Vec<AnalyzedShader>, Failure> {
    let mut all = Vec::new();
    for shader in load_all(given.file, &given.compilation) {
        all.extend(read_module(given, &shader.map_err(|error| error.failure())?, model, longest)?);
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

/// Returns the entry points of a module.
fn read_module(
    given: &Given<'_>,
    shader: &SourceModule,
    model: &Model,
    longest: Duration,
) -> Result<Vec<AnalyzedShader>, Failure> {
    let file = given.file;
    let wrong = |refusal: &Refusal| Failure::input_message(placed_refusal_text(file, refusal));
    require_whole_grid(given.options, "a dispatch runs every workgroup of the grid")?;
    let module = Arc::new(
        frontend::read_bound_module(&shader.bytes, given.options).map_err(|refusal| wrong(&refusal))?,
    );
    let entries = entries(file, &module, &shader.unset, given.options).map_err(|refusal| wrong(&refusal))?;
    if entries.is_empty() {
        return Err(Failure::input_message(format!("{file}: {}", module.no_entry_point())));
    }
    let mut all = Vec::with_capacity(entries.len());
    for options in entries {
        let choice = frontend::choose_inputs(&module, &options, given.inputs, frontend::InputGrid::Whole)
            .map_err(|refusal| wrong(&refusal))?;
        let chosen = choice.description(&options);
        let options = choice.primary(&options);
        let entry = options.entry.clone().unwrap_or_default();
        let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
        let mut own = AnalyzedShader {
            id: format!("{stem}:{entry}"),
            file: file.to_owned(),
            flags: given.flags.to_vec(),
            compiler: shader.compiler.clone(),
            shader: runner::shader::Shader { entry, grid: [1; 3], ..runner::shader::Shader::default() },
            names: Vec::new(),
            words: Arc::new(|places| places.iter().map(|place| format!("{place:?}")).collect()),
            local_size: [1; 3],
            workgroup_bytes: 0,
            needs: Vec::new(),
            unknown: Vec::new(),
            loops: false,
            expected: ExpectedContents::Unknown { race_free: false, why: "it was not analyzed".to_owned() },
            claim: None,
            notes: Vec::new(),
            unavailable: None,
        };
        match frontend::plan_dispatch(&module, &options) {
            Ok(dispatch)
                if dispatch.needs.iter().any(|group| group.contains(&Feature::BufferDeviceAddress)) =>
            {
                // `plan_dispatch` refuses only addresses that are known.
                let what = "dispatching buffers that are accessed by device address";
                own.unavailable = Some(format!("not available: {what}"));
            }
            Ok(dispatch) => fill(&mut own, dispatch, &module, &options, model, longest)
                .map_err(|refusal| wrong(&refusal))?,
            // An unsupported feature is not an error of the shader.
            Err(Refusal { what: Problem::Unsupported(what), .. }) => {
                own.unavailable = Some(format!("not available: {what}"));
            }
            Err(refusal) => return Err(wrong(&refusal)),
        }
        if !chosen.is_empty() {
            own.notes.push(format!("inputs chosen by the tool: {chosen}"));
        }
        let needs: Vec<String> =
            choice.needs(&module).inputs.into_iter().map(|one| needed_record(one).to_sentence()).collect();
        let is_open =
            !matches!(own.expected, ExpectedContents::Undefined(_)) || choice.needs(&module).decide_findings;
        if !needs.is_empty() && is_open {
            let why = format!("needs-inputs: {}", needs.join("; "));
            own.expected = ExpectedContents::Unknown { race_free: false, why };
        }
        all.push(own);
    }
    Ok(all)
}

fn fill(
    own: &mut AnalyzedShader,
    dispatch: KernelDispatch,
    module: &Arc<SpirvModule>,
    options: &frontend::AnalysisOptions,
    model: &Model,
    longest: Duration,
) -> Result<(), Refusal> {
    let written: Vec<(u32, u32, u32)> = (dispatch.buffers.iter().filter(|buffer| !buffer.uniform))
        .map(|buffer| (buffer.set, buffer.binding, buffer.element))
        .collect();
    // The padding to whole words is part of the buffer that the model sees.
    let mut options = options.clone();
    for buffer in dispatch.buffers.iter().filter(|buffer| buffer.image.is_none()) {
        options.buffers.insert((buffer.set, buffer.binding), buffer.bytes.clone());
    }
    let number = |at: (u32, u32, u32)| written.iter().position(|own| *own == at).map(|number| number as u32);
    if let Some(claim) = frontend::claim(module, &options)? {
        let mut cells = Vec::with_capacity(claim.places.len());
        for (at, offset, bytes) in &claim.places {
            let Some(buffer) = number(*at) else {
                let what = "the assertion is about memory that a dispatch does not write for the host";
                return Err(Problem::Annotation(what.to_owned()).located_at(frontend::SourcePosition::Module));
            };
            cells.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
        }
        name_cells(&mut cells, &written, module, &options)?;
        let text = claim.text.clone();
        own.claim = Some(ShaderClaim { text, cells, holds: Arc::new(move |values| claim.holds(values)) });
    }
    let stop = patience(longest);
    let told = |refusal: &Refusal| source_refusal_text(&own.file, module, refusal);
    let budget = model::Budget::until(&stop);
    let finals = frontend::final_contents(module, &dispatch, &options, model, budget, &told);
    own.expected = match finals {
        FinalContents::Undefined(why) => ExpectedContents::Undefined(why),
        FinalContents::Unknown { race_free, why } => ExpectedContents::Unknown { race_free, why },
        FinalContents::Known { cells, contents } => {
            let mut known = Vec::with_capacity(cells.len());
            for FinalCell { at, offset, bytes, .. } in &cells {
                let buffer = number(*at).unwrap_or(u32::MAX);
                known.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
            }
            name_cells(&mut known, &written, module, &options)?;
            let says =
                |says: frontend::FinalContent| ContentVerdict { allowed: says.allowed, weak: says.weak };
            let contents = contents.into_iter().map(|(values, of)| (values, says(of))).collect();
            ExpectedContents::Known { cells: known, contents }
        }
    };
    let (module, options) = (module.clone(), options);
    own.words = Arc::new(move |places| {
        let place = |(buffer, word): &(u32, u64)| {
            let (set, binding, element) = written.get(*buffer as usize).copied().unwrap_or_default();
            (set, binding, element, 4 * word)
        };
        let places: Vec<_> = places.iter().map(place).collect();
        frontend::element_names(&module, &options, &places).unwrap_or_default()
    });
    own.names = dispatch.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    own.shader = runner::shader::Shader {
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
                    shape: match image.size {
                        _ if image.is_buffer => InputShape::Texels,
                        (width, Some(_)) => InputShape::Rows(width),
                        (_, None) => InputShape::Row,
                    },
                    format: image.format,
                });
                let at = [buffer.set, buffer.binding, buffer.element];
                ShaderInput { image, ..ShaderInput::new(at, buffer.uniform, &words) }
            })
            .collect(),
    };
    own.local_size = dispatch.local_size;
    own.workgroup_bytes = dispatch.workgroup_bytes;
    own.needs = dispatch.needs;
    own.unknown = dispatch.unknown;
    own.loops = dispatch.loops;
    own.notes = dispatch.notes;
    Ok(())
}

fn name_cells(
    cells: &mut [FinalNumber],
    written: &[(u32, u32, u32)],
    module: &SpirvModule,
    options: &frontend::AnalysisOptions,
) -> Result<(), Refusal> {
    let place = |cell: &FinalNumber| {
        let (set, binding, element) = written.get(cell.buffer as usize).copied().unwrap_or_default();
        (set, binding, element, cell.offset)
    };
    let places: Vec<_> = cells.iter().map(place).collect();
    for (cell, name) in cells.iter_mut().zip(frontend::element_names(module, options, &places)?) {
        cell.name = name;
    }
    Ok(())
}
