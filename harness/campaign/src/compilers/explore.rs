//! Explores the machine code of a test for outcomes that the model forbids.

use std::collections::BTreeMap;

use codegen::{CompiledKernels, Form, FormKernel, form, mutation_test};
use isa::{AmdFamily, FactTable, MachineVerdict, Profile};
use litmus::{Prediction, Race};
use model::{Model, PredictOptions, predict};
use results::wire::{
    CODEGEN_EDIT_SCHEMA, CODEGEN_EXPLORE_NOTE, CODEGEN_EXPLORE_SCHEMA, CodegenEditLine, CodegenExploreLine,
    CodegenExploreVerdict, CodegenStep, CodegenWitness,
};

use super::engine::{CompilerEngine, FormKernels, KernelResult};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, for_each_device, relaxations};
use crate::Failure;
use crate::compile_worker::CompilationResult;
use crate::parallel::parallel_map;

/// The model whose forbidden outcomes are searched; devices without chains use its variant.
const MODEL: &str = "vulkan";

/// The reason for a test without edits.
const NO_EDIT_MATTERS: &str = "no edit can matter: the outcome of the test's condition is not forbidden";

/// The prediction for each test, or the reason why there is nothing to search for.
type Predictions = Vec<Result<Prediction, String>>;

/// The answers about a device, and the results of editing its code.
pub type ExploredLines = (Vec<CodegenExploreLine>, Vec<CodegenEditLine>);

/// Explores the code of every kernel on every device and delivers the answers per device. With `with_edits`,
/// it removes one instruction or bit at a time instead.
///
/// # Errors
/// Those of `deliver`.
pub fn explore_devices(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    with_edits: bool,
    mut deliver: impl FnMut(&CompilerTarget, ExploredLines) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let facts = FactTable::shipped().map_err(Failure::environment_error)?;
    let mut predictions: BTreeMap<&'static str, Predictions> = BTreeMap::new();
    for name in request.targets.iter().map(model_name_for) {
        if !predictions.contains_key(name) {
            predictions.insert(name, predict_all(name, request)?);
        }
    }
    if with_edits {
        let forbidden_flags = relaxations::forbidden_flags(request)?;
        for model_predictions in predictions.values_mut() {
            let not_forbidden =
                model_predictions.iter_mut().zip(&forbidden_flags).filter(|(_, conforms)| !**conforms);
            not_forbidden.for_each(|(prediction, _)| *prediction = Err(NO_EDIT_MATTERS.to_owned()));
        }
    }
    let explore_one = |target: &CompilerTarget| {
        let predictions = predictions.get(model_name_for(target)).map(Vec::as_slice).unwrap_or_default();
        explore_target(engine, target, request, predictions, &facts, with_edits)
    };
    for_each_device(request, explore_one, &mut deliver)
}

/// Returns true if documented behaviour lets a device break the model.
pub fn breaks_model(line: &CodegenExploreLine) -> bool {
    line.verdict == CodegenExploreVerdict::Reachable && line.profile == Profile::Documented.to_string()
}

fn model_name_for(target: &CompilerTarget) -> &'static str {
    let has_chains = target.listed.capabilities.availability_visibility_chains;
    verdicts::name_without_chains(MODEL).filter(|_| !has_chains).unwrap_or(MODEL)
}

fn predict_all(name: &str, request: &CodegenRequest) -> Result<Predictions, Failure> {
    let model = Model::shipped(name).ok_or_else(|| Failure::not_available(format!("model `{name}`")))?;
    let model = model.map_err(Failure::input)?;
    let all = parallel_map(&request.tests, |item| {
        if !model.supports_dialect(item.test.dialect) {
            return Err(format!("the model `{name}` does not support this dialect"));
        }
        let effective_test =
            shaders::effective_test(&item.test, item.variant.shader).map_err(|error| error.to_string())?;
        let prediction = predict(&effective_test, &model, &PredictOptions::default())
            .map_err(|error| error.to_string())?;
        match prediction.race {
            Race::Free => Ok(prediction),
            Race::Racy if prediction.race_thin_air => Ok(prediction),
            Race::Racy => Err("the program races, so nothing is forbidden".to_owned()),
            Race::Unknown => Err("the model did not answer within the time limit".to_owned()),
        }
    });
    Ok(all)
}

fn explore_target(
    engine: &CompilerEngine,
    target: &CompilerTarget,
    request: &CodegenRequest,
    predictions: &[Result<Prediction, String>],
    facts: &FactTable,
    with_edits: bool,
) -> ExploredLines {
    let (mut lines, mut edits) = (Vec::new(), Vec::new());
    let mut kernel_sets: Vec<&FormKernels> = Vec::new();
    let mut set_contexts = Vec::new();
    for ((item, forms), prediction) in request.tests.iter().zip(request.forms_for(target)).zip(predictions) {
        for form in forms {
            let blank = blank_line(item, form.form, target, request);
            let skipped = match (&form.kernels, prediction) {
                (Err(why), _) | (_, Err(why)) => Some(why.clone()),
                (Ok(kernel_set), Ok(_)) => {
                    target.missing_feature(&kernel_set.kernels, &item.test.metadata.needs)
                }
            };
            match (skipped, &form.kernels, prediction) {
                (None, Ok(kernel_set), Ok(prediction)) => {
                    kernel_sets.push(kernel_set);
                    set_contexts.push((item, prediction, blank));
                }
                (why, ..) => lines.push(CodegenExploreLine { detail: why, ..blank }),
            }
        }
    }
    let extract_assembly =
        |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| compiled.assembly().to_owned();
    let results = engine.compile_forms(target, &kernel_sets, &extract_assembly);
    for (((item, prediction, blank), kernel_set), set_results) in
        set_contexts.into_iter().zip(kernel_sets).zip(results)
    {
        let texts: Result<Vec<String>, String> = set_results
            .into_iter()
            .map(|result| match result {
                KernelResult::Compiled(text) => Ok(text),
                KernelResult::Crashed(why) | KernelResult::MissingFeature(why) => Err(why),
            })
            .collect();
        match texts {
            Ok(texts) => match build_question(item, kernel_set, prediction, &texts, target, request) {
                Ok(machine_question) if with_edits => {
                    edits.extend(edit_lines(&machine_question, kernel_set, &blank, facts))
                }
                Ok(machine_question) => {
                    lines.extend(explore_form(&machine_question, kernel_set, &texts, &blank, facts))
                }
                Err(why) => {
                    let verdict = CodegenExploreVerdict::Unsupported;
                    lines.push(CodegenExploreLine { verdict, detail: Some(why), ..blank });
                }
            },
            Err(why) => lines.push(CodegenExploreLine { detail: Some(why), ..blank }),
        }
    }
    (lines, edits)
}

/// Returns the results of editing a form's code.
fn edit_lines(
    machine_question: &isa::MachineQuestion,
    kernel_set: &FormKernels,
    blank: &CodegenExploreLine,
    facts: &FactTable,
) -> Vec<CodegenEditLine> {
    let edited = mutation_test::mutate_code(machine_question, Profile::Documented, facts).unwrap_or_default();
    let line = |edited: mutation_test::EditResult| CodegenEditLine {
        schema: CODEGEN_EDIT_SCHEMA.to_owned(),
        id: blank.id.clone(),
        device: blank.device.clone(),
        form: blank.form.clone(),
        kernel: kernel_set.kernels.get(edited.kernel).map(|unit| unit.name.clone()).unwrap_or_default(),
        code: edited.text,
        edit: edited.kind.to_string(),
        caught: edited.verdict.is_detected(),
        fate: edited.verdict.to_string(),
    };
    edited.into_iter().map(line).collect()
}

fn blank_line(
    item: &CompiledTest,
    form: Form,
    target: &CompilerTarget,
    request: &CodegenRequest,
) -> CodegenExploreLine {
    CodegenExploreLine {
        schema: CODEGEN_EXPLORE_SCHEMA.to_owned(),
        id: item.id.clone(),
        device: target.name.clone(),
        driver: target.driver(),
        form: form.to_string(),
        model: model_name_for(target).to_owned(),
        profile: String::new(),
        verdict: CodegenExploreVerdict::Skipped,
        detail: None,
        assumptions: Vec::new(),
        placements: 0,
        states: 0,
        witness: None,
        note: CODEGEN_EXPLORE_NOTE.to_owned(),
        replay: request.replay_command(item, target).replace("--emit asm", "--explore"),
    }
}

/// Explores the code of a form under each profile.
fn explore_form(
    machine_question: &isa::MachineQuestion,
    kernel_set: &FormKernels,
    texts: &[String],
    blank: &CodegenExploreLine,
    facts: &FactTable,
) -> Vec<CodegenExploreLine> {
    facts
        .distinct_profiles(machine_question.family.generation())
        .into_iter()
        .map(|profile| {
            let line = CodegenExploreLine { profile: profile.to_string(), ..blank.clone() };
            answer_line(isa::explore(machine_question, profile, facts), line, kernel_set, texts)
        })
        .collect()
}

/// Builds the question for the explorer, or returns the reason why there is none.
fn build_question(
    item: &CompiledTest,
    kernel_set: &FormKernels,
    prediction: &Prediction,
    texts: &[String],
    target: &CompilerTarget,
    request: &CodegenRequest,
) -> Result<isa::MachineQuestion, String> {
    let family = target.family.ok_or("machine code of another vendor")?;
    let descriptors = family.find_vendor().and_then(|vendor| vendor.descriptors);
    let descriptors = descriptors.ok_or("the explorer does not support this vendor's machine code")?;
    let sizes = target.kernel_sizes(request.lanes);
    let family: AmdFamily =
        family.name.parse().map_err(|error: isa::family::UnknownFamily| error.to_string())?;
    let programs: Result<Vec<isa::MachineProgram>, _> = texts.iter().map(|text| isa::parse(text)).collect();
    let texts = programs.map_err(|error| error.to_string())?;
    let program = form::form_program(&item.test, kernel_set.form, item.variant.shader, &sizes)
        .map_err(|error| error.to_string())?;
    let kernels = CompiledKernels {
        test: &item.test,
        program: &program,
        programs: &texts,
        family: &family,
        descriptors,
        subgroup_size: sizes.subgroup_size,
    };
    codegen::machine_question(&kernels, prediction).map_err(|error| error.to_string())
}

fn answer_line(
    verdict: MachineVerdict,
    line: CodegenExploreLine,
    kernel_set: &FormKernels,
    texts: &[String],
) -> CodegenExploreLine {
    match verdict {
        MachineVerdict::Unreachable(explored) => CodegenExploreLine {
            verdict: CodegenExploreVerdict::Unreachable,
            assumptions: explored.assumptions,
            placements: explored.placements,
            states: explored.states,
            ..line
        },
        MachineVerdict::Reachable(witness) => CodegenExploreLine {
            verdict: CodegenExploreVerdict::Reachable,
            assumptions: witness.exploration.assumptions,
            placements: witness.exploration.placements,
            states: witness.exploration.states,
            witness: Some(CodegenWitness {
                outcome: witness.outcome,
                units: witness.placement.units,
                arrays: witness.placement.arrays,
                steps: witness
                    .steps
                    .into_iter()
                    .map(|step| CodegenStep {
                        workgroup: step.workgroup as u64,
                        wave: step.wave as u64,
                        kernel: kernel_set
                            .kernels
                            .get(step.kernel)
                            .map(|unit| unit.name.clone())
                            .unwrap_or_default(),
                        code: code_line(texts, step.kernel, step.line),
                        effect: step.description,
                    })
                    .collect(),
            }),
            ..line
        },
        MachineVerdict::Hazard(hazard) => CodegenExploreLine {
            verdict: CodegenExploreVerdict::Hazard,
            detail: Some(hazard.to_string()),
            ..line
        },
        MachineVerdict::Unsupported(unsupported) => CodegenExploreLine {
            verdict: CodegenExploreVerdict::Unsupported,
            detail: Some(unsupported.to_string()),
            ..line
        },
    }
}

/// Returns a line of a kernel's text (counted from 1), without its encoding.
fn code_line(texts: &[String], kernel: usize, line: u32) -> String {
    let text = texts.get(kernel).and_then(|text| text.lines().nth((line as usize).checked_sub(1)?));
    let text = text.unwrap_or_default();
    text.split(';').next().unwrap_or(text).trim().to_owned()
}
