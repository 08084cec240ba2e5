//! Compares the machine code of a test with that of each of its relaxations.

use std::sync::Arc;

use codegen::differ::{relaxation_kind, shape_of_test_name};
use codegen::{CodeDifference, Disassembly, Form, FormKernel, form_kernels};
use litmus::Test;
use model::synthesis::{TestStanding, standing_of, weakenings};
use model::{Model, PredictOptions};
use results::wire::{CODEGEN_DIFF_SCHEMA, CodegenDiffLine, CodegenDiffVerdict};

use super::engine::{Engine, FormKernels, Made};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, by_device};
use crate::Failure;
use crate::compiling::CompilationResult;
use crate::parallel::map;
use crate::targets::Tell;

/// The model that decides whether a relaxation matters. RADV has no availability and visibility chains.
const MODEL: &str = "vulkan-nochains";

/// A relaxation of a test.
struct RelaxedTest {
    /// Index of the test.
    item: usize,
    step: String,
    test: Test,
    needed: Option<bool>,
}

/// Compares every test with its relaxations on every device and delivers the lines of each device.
///
/// # Errors
/// Those of `deliver`.
pub fn compared(
    engine: &Engine,
    asked: &CodegenRequest,
    tell: Tell<'_>,
    mut deliver: impl FnMut(&CompilerTarget, Vec<CodegenDiffLine>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let relaxed = list_relaxations(asked)?;
    let conforming = relaxed.iter().map(|relaxed| relaxed.item).collect::<std::collections::BTreeSet<_>>();
    let others = asked.items.len() - conforming.len();
    if others > 0 {
        tell(&format!("{others} tests are omitted: their outcome is allowed, or they race"));
    }
    by_device(asked, |target| compare_code(engine, target, asked, &relaxed), &mut deliver)
}

/// Loads the model that decides whether a relaxation matters.
fn load_model() -> Result<Model, Failure> {
    let model = Model::shipped(MODEL).ok_or_else(|| Failure::not_available(format!("model `{MODEL}`")))?;
    model.map_err(Failure::input)
}

/// Returns for each test whether its outcome is forbidden. For an allowed outcome, a relaxation proves
/// nothing about the code.
pub(super) fn conforming(asked: &CodegenRequest) -> Result<Vec<bool>, Failure> {
    let model = load_model()?;
    let all = map(&asked.items, |item| {
        item.test.question.is_some()
            && model.judges(item.test.dialect)
            && standing(&item.test, &model) == TestStanding::Forbidden
    });
    Ok(all)
}

/// Returns the relaxations of the tests whose outcome is forbidden.
fn list_relaxations(asked: &CodegenRequest) -> Result<Vec<RelaxedTest>, Failure> {
    let model = load_model()?;
    let conforming = conforming(asked)?.into_iter().enumerate().filter(|(_, conforms)| *conforms);
    let conforming: Vec<(usize, &CompiledTest)> =
        conforming.filter_map(|(number, _)| Some((number, asked.items.get(number)?))).collect();
    let relaxed = map(&conforming, |(number, item)| {
        let relaxed = weakenings(&item.test).into_iter().map(|weakened| RelaxedTest {
            item: *number,
            step: weakened.step,
            needed: match standing(&weakened.test, &model) {
                TestStanding::Allowed | TestStanding::Racy => Some(true),
                TestStanding::Forbidden => Some(false),
                TestStanding::Unknown => None,
            },
            test: weakened.test,
        });
        relaxed.collect::<Vec<_>>()
    });
    Ok(relaxed.into_iter().flatten().collect())
}

fn standing(test: &Test, model: &Model) -> TestStanding {
    model::predict_summary(test, model, &PredictOptions::default())
        .map_or(TestStanding::Unknown, |says| standing_of(test, &says))
}

/// The machine code of each kernel of a form, or the reason why there is none.
type Codes = Result<Vec<Disassembly>, String>;

fn compare_code(
    engine: &Engine,
    target: &CompilerTarget,
    asked: &CodegenRequest,
    relaxed: &[RelaxedTest],
) -> Vec<CodegenDiffLine> {
    let sizes = target.sizes(asked.lanes);
    let mut questions: Vec<FormKernels> = Vec::new();
    let mut add = |test: &Test, form: Form, item: &CompiledTest| -> Result<usize, String> {
        let units =
            form_kernels(test, form, item.variant.shader, &sizes).map_err(|error| error.to_string())?;
        if let Some(missing) = target.lacks(&units, &test.metadata.needs) {
            return Err(missing);
        }
        questions.push(FormKernels { test: Arc::new(test.clone()), form, units });
        Ok(questions.len() - 1)
    };
    let mut pairs = Vec::new();
    for &form in &asked.forms {
        let mut base: Option<(usize, Result<usize, String>)> = None;
        for relaxed in relaxed {
            let Some(item) = asked.items.get(relaxed.item) else { continue };
            let known = match &base {
                Some((number, known)) if *number == relaxed.item => known.clone(),
                _ => {
                    let known = add(&item.test, form, item);
                    base = Some((relaxed.item, known.clone()));
                    known
                }
            };
            // A form that the test does not have cannot be compared.
            let Ok(before) = known else { continue };
            pairs.push((form, relaxed, item, before, add(&relaxed.test, form, item)));
        }
    }
    let dialect = target.dialect();
    let keep = |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| {
        Disassembly::parse(compiled.assembly(), dialect)
    };
    let asked_questions: Vec<&FormKernels> = questions.iter().collect();
    let codes: Vec<Codes> = engine
        .ask(target, &asked_questions, &keep)
        .into_iter()
        .map(|kernels| {
            kernels
                .into_iter()
                .map(|made| match made {
                    Made::Compiled(machine) => machine.map_err(|error| error.to_string()),
                    Made::Crashed(how) => Err(how),
                    Made::Lacks(what) => Err(what),
                })
                .collect()
        })
        .collect();
    let code = |index: usize| codes.get(index).cloned().unwrap_or_else(|| Err("no answer".to_owned()));
    let lines = pairs.into_iter().map(|(form, relaxed, item, before, after)| {
        let difference =
            after.and_then(|after| Ok(CodeDifference::between_forms(&code(before)?, &code(after)?)));
        CodegenDiffLine {
            schema: CODEGEN_DIFF_SCHEMA.to_owned(),
            id: item.id.clone(),
            device: target.name.clone(),
            form: form.to_string(),
            shape: shape_of_test_name(&item.test.name).to_owned(),
            step: relaxed.step.clone(),
            relaxation: relaxation_kind(&relaxed.step).to_owned(),
            needed: relaxed.needed,
            verdict: match &difference {
                Ok(difference) if difference.has_same_memory_operations() => CodegenDiffVerdict::NoEffect,
                Ok(_) => CodegenDiffVerdict::Differs,
                Err(_) => CodegenDiffVerdict::Skipped,
            },
            detail: difference.map_or_else(|why| why, |difference| difference.to_string()),
        }
    });
    lines.collect()
}
