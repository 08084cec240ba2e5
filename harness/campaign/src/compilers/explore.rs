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

use super::engine::{Engine, FormKernels, Made};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, by_device, relaxations};
use crate::Failure;
use crate::compiling::CompilationResult;
use crate::parallel::map;

/// The model whose forbidden outcomes are searched; devices without chains use its variant.
const MODEL: &str = "vulkan";

/// The reason for a test without edits.
const NO_EDIT_MATTERS: &str = "no edit can matter: the outcome of the test's condition is not forbidden";

/// The prediction for each test, or the reason why there is nothing to search for.
type Predictions = Vec<Result<Prediction, String>>;

/// The answers about a device, and the results of editing its code.
pub type ExploredLines = (Vec<CodegenExploreLine>, Vec<CodegenEditLine>);

/// Explores the code of every kernel on every device and delivers the answers for each device. With `edits`,
/// it removes one instruction or bit at a time instead.
///
/// # Errors
/// Those of `deliver`.
pub fn explore(
    engine: &Engine,
    asked: &CodegenRequest,
    edits: bool,
    mut deliver: impl FnMut(&CompilerTarget, ExploredLines) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let facts = FactTable::shipped().map_err(Failure::environment_error)?;
    let mut predictions: BTreeMap<&'static str, Predictions> = BTreeMap::new();
    for name in asked.targets.iter().map(model_of) {
        if !predictions.contains_key(name) {
            predictions.insert(name, predict_all(name, asked)?);
        }
    }
    if edits {
        let conforming = relaxations::conforming(asked)?;
        for of_model in predictions.values_mut() {
            let others = of_model.iter_mut().zip(&conforming).filter(|(_, conforms)| !**conforms);
            others.for_each(|(prediction, _)| *prediction = Err(NO_EDIT_MATTERS.to_owned()));
        }
    }
    let explored = |target: &CompilerTarget| {
        let predictions = predictions.get(model_of(target)).map(Vec::as_slice).unwrap_or_default();
        explore_on(engine, target, asked, predictions, &facts, edits)
    };
    by_device(asked, explored, &mut deliver)
}

/// Returns true if documented behaviour lets a device break the model.
pub fn is_broken(line: &CodegenExploreLine) -> bool {
    line.verdict == CodegenExploreVerdict::Reachable && line.profile == Profile::Documented.to_string()
}

fn model_of(target: &CompilerTarget) -> &'static str {
    let chains = target.listed.capabilities.availability_visibility_chains;
    answers::name_without_chains(MODEL).filter(|_| !chains).unwrap_or(MODEL)
}

fn predict_all(name: &str, asked: &CodegenRequest) -> Result<Predictions, Failure> {
    let model = Model::shipped(name).ok_or_else(|| Failure::not_available(format!("model `{name}`")))?;
    let model = model.map_err(Failure::input)?;
    let all = map(&asked.items, |item| {
        if !model.judges(item.test.dialect) {
            return Err(format!("the model `{name}` does not support this dialect"));
        }
        let said =
            shaders::effective_test(&item.test, item.variant.shader).map_err(|error| error.to_string())?;
        let prediction =
            predict(&said, &model, &PredictOptions::default()).map_err(|error| error.to_string())?;
        match prediction.race {
            Race::Free => Ok(prediction),
            Race::Racy if prediction.race_thin_air => Ok(prediction),
            Race::Racy => Err("the program races, so nothing is forbidden".to_owned()),
            Race::Unknown => Err("the model did not answer within the time limit".to_owned()),
        }
    });
    Ok(all)
}

fn explore_on(
    engine: &Engine,
    target: &CompilerTarget,
    asked: &CodegenRequest,
    predictions: &[Result<Prediction, String>],
    facts: &FactTable,
    with_edits: bool,
) -> ExploredLines {
    let (mut lines, mut edits) = (Vec::new(), Vec::new());
    let mut questions: Vec<&FormKernels> = Vec::new();
    let mut of_question = Vec::new();
    for ((item, told), prediction) in asked.items.iter().zip(asked.told_for(target)).zip(predictions) {
        for form in told {
            let blank = blank_line(item, form.form, target, asked);
            let skipped = match (&form.made, prediction) {
                (Err(why), _) | (_, Err(why)) => Some(why.clone()),
                (Ok(question), Ok(_)) => target.lacks(&question.units, &item.test.metadata.needs),
            };
            match (skipped, &form.made, prediction) {
                (None, Ok(question), Ok(prediction)) => {
                    questions.push(question);
                    of_question.push((item, prediction, blank));
                }
                (why, ..) => lines.push(CodegenExploreLine { detail: why, ..blank }),
            }
        }
    }
    let keep = |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| compiled.assembly().to_owned();
    let compiled = engine.ask(target, &questions, &keep);
    for (((item, prediction, blank), question), made) in of_question.into_iter().zip(questions).zip(compiled)
    {
        let texts: Result<Vec<String>, String> = made
            .into_iter()
            .map(|made| match made {
                Made::Compiled(text) => Ok(text),
                Made::Crashed(why) | Made::Lacks(why) => Err(why),
            })
            .collect();
        match texts {
            Ok(texts) => match build_question(item, question, prediction, &texts, target, asked) {
                Ok(asks) if with_edits => edits.extend(edits_of(&asks, question, &blank, facts)),
                Ok(asks) => lines.extend(explore_form(&asks, question, &texts, &blank, facts)),
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
fn edits_of(
    asks: &isa::MachineQuestion,
    question: &FormKernels,
    blank: &CodegenExploreLine,
    facts: &FactTable,
) -> Vec<CodegenEditLine> {
    let edited = mutation_test::mutate_code(asks, Profile::Documented, facts).unwrap_or_default();
    let line = |edited: mutation_test::EditResult| CodegenEditLine {
        schema: CODEGEN_EDIT_SCHEMA.to_owned(),
        id: blank.id.clone(),
        device: blank.device.clone(),
        form: blank.form.clone(),
        kernel: question.units.get(edited.kernel).map(|unit| unit.name.clone()).unwrap_or_default(),
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
    asked: &CodegenRequest,
) -> CodegenExploreLine {
    CodegenExploreLine {
        schema: CODEGEN_EXPLORE_SCHEMA.to_owned(),
        id: item.id.clone(),
        device: target.name.clone(),
        driver: target.driver(),
        form: form.to_string(),
        model: model_of(target).to_owned(),
        profile: String::new(),
        verdict: CodegenExploreVerdict::Skipped,
        detail: None,
        assumptions: Vec::new(),
        placements: 0,
        states: 0,
        witness: None,
        note: CODEGEN_EXPLORE_NOTE.to_owned(),
        replay: asked.replay(item, target).replace("--emit asm", "--explore"),
    }
}

/// Explores the code of a form under each profile.
fn explore_form(
    asks: &isa::MachineQuestion,
    question: &FormKernels,
    texts: &[String],
    blank: &CodegenExploreLine,
    facts: &FactTable,
) -> Vec<CodegenExploreLine> {
    facts
        .distinct_profiles(asks.family.generation())
        .into_iter()
        .map(|profile| {
            let line = CodegenExploreLine { profile: profile.to_string(), ..blank.clone() };
            answer(isa::explore(asks, profile, facts), line, question, texts)
        })
        .collect()
}

/// Builds the question for the explorer, or returns the reason why there is none.
fn build_question(
    item: &CompiledTest,
    question: &FormKernels,
    prediction: &Prediction,
    texts: &[String],
    target: &CompilerTarget,
    asked: &CodegenRequest,
) -> Result<isa::MachineQuestion, String> {
    let family = target.family.ok_or("machine code of another vendor")?;
    let descriptors = family.find_vendor().and_then(|vendor| vendor.descriptors);
    let descriptors = descriptors.ok_or("the explorer does not support this vendor's machine code")?;
    let sizes = target.sizes(asked.lanes);
    let family: AmdFamily =
        family.name.parse().map_err(|error: isa::family::UnknownFamily| error.to_string())?;
    let read: Result<Vec<isa::MachineProgram>, _> = texts.iter().map(|text| isa::parse(text)).collect();
    let texts = read.map_err(|error| error.to_string())?;
    let program = form::form_program(&item.test, question.form, item.variant.shader, &sizes)
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

fn answer(
    verdict: MachineVerdict,
    line: CodegenExploreLine,
    question: &FormKernels,
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
                        kernel: question
                            .units
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
