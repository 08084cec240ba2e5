//! Compares the machine code of a test with that of each of its relaxations.

use std::sync::Arc;

use codegen::differ::{relaxation_kind, shape_of_test_name};
use codegen::{CodeDifference, Disassembly, Form, FormKernel, form_kernels};
use litmus::Test;
use model::synthesis::{ConditionVerdict, classify_condition, weaken_test};
use model::{Model, PredictOptions};
use results::wire::{CODEGEN_DIFF_SCHEMA, CodegenDiffLine, CodegenDiffVerdict};

use super::engine::{CompilerEngine, FormKernels, KernelResult};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, for_each_device};
use crate::Failure;
use crate::compile_worker::CompilationResult;
use crate::parallel::parallel_map;
use crate::targets::MessageSink;

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
pub fn compare_relaxations(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    on_message: MessageSink<'_>,
    mut deliver: impl FnMut(&CompilerTarget, Vec<CodegenDiffLine>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let relaxed = list_relaxations(request)?;
    let compared_tests =
        relaxed.iter().map(|relaxed| relaxed.item).collect::<std::collections::BTreeSet<_>>();
    let others = request.tests.len() - compared_tests.len();
    if others > 0 {
        on_message(&format!("{others} tests are omitted: their outcome is allowed, or they race"));
    }
    for_each_device(request, |target| compare_code(engine, target, request, &relaxed), &mut deliver)
}

/// Loads the model that decides whether a relaxation matters.
fn load_model() -> Result<Model, Failure> {
    let model = Model::shipped(MODEL).ok_or_else(|| Failure::not_available(format!("model `{MODEL}`")))?;
    model.map_err(Failure::input)
}

/// Returns true for each test whose outcome is forbidden. For an allowed outcome, a relaxation proves
/// nothing about the code.
pub(super) fn forbidden_flags(request: &CodegenRequest) -> Result<Vec<bool>, Failure> {
    let model = load_model()?;
    let all = parallel_map(&request.tests, |item| {
        item.test.question.is_some()
            && model.supports_dialect(item.test.dialect)
            && condition_status(&item.test, &model) == ConditionVerdict::Forbidden
    });
    Ok(all)
}

/// Returns the relaxations of the tests whose outcome is forbidden.
fn list_relaxations(request: &CodegenRequest) -> Result<Vec<RelaxedTest>, Failure> {
    let model = load_model()?;
    let forbidden = forbidden_flags(request)?.into_iter().enumerate().filter(|(_, conforms)| *conforms);
    let forbidden: Vec<(usize, &CompiledTest)> =
        forbidden.filter_map(|(number, _)| Some((number, request.tests.get(number)?))).collect();
    let relaxed = parallel_map(&forbidden, |(number, item)| {
        let relaxed = weaken_test(&item.test).into_iter().map(|weakened| RelaxedTest {
            item: *number,
            step: weakened.step,
            needed: match condition_status(&weakened.test, &model) {
                ConditionVerdict::Allowed | ConditionVerdict::Racy => Some(true),
                ConditionVerdict::Forbidden => Some(false),
                ConditionVerdict::Unknown => None,
            },
            test: weakened.test,
        });
        relaxed.collect::<Vec<_>>()
    });
    Ok(relaxed.into_iter().flatten().collect())
}

fn condition_status(test: &Test, model: &Model) -> ConditionVerdict {
    model::predict_summary(test, model, &PredictOptions::default())
        .map_or(ConditionVerdict::Unknown, |verdict| classify_condition(test, &verdict))
}

/// The machine code of each kernel of a form, or the reason why there is none.
type FormCode = Result<Vec<Disassembly>, String>;

fn compare_code(
    engine: &CompilerEngine,
    target: &CompilerTarget,
    request: &CodegenRequest,
    relaxed: &[RelaxedTest],
) -> Vec<CodegenDiffLine> {
    let sizes = target.kernel_sizes(request.lanes);
    let mut kernel_sets: Vec<FormKernels> = Vec::new();
    let mut add_kernel_set = |test: &Test, form: Form, item: &CompiledTest| -> Result<usize, String> {
        let units =
            form_kernels(test, form, item.variant.shader, &sizes).map_err(|error| error.to_string())?;
        if let Some(missing) = target.missing_feature(&units, &test.metadata.needs) {
            return Err(missing);
        }
        kernel_sets.push(FormKernels { test: Arc::new(test.clone()), form, kernels: units });
        Ok(kernel_sets.len() - 1)
    };
    let mut pairs = Vec::new();
    for &form in &request.forms {
        let mut cached_base: Option<(usize, Result<usize, String>)> = None;
        for relaxed in relaxed {
            let Some(item) = request.tests.get(relaxed.item) else { continue };
            let base_index = match &cached_base {
                Some((number, known)) if *number == relaxed.item => known.clone(),
                _ => {
                    let base_index = add_kernel_set(&item.test, form, item);
                    cached_base = Some((relaxed.item, base_index.clone()));
                    base_index
                }
            };
            // A form that the test does not have cannot be compared.
            let Ok(before) = base_index else { continue };
            pairs.push((form, relaxed, item, before, add_kernel_set(&relaxed.test, form, item)));
        }
    }
    let dialect = target.dialect();
    let extract_disassembly = |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| {
        Disassembly::parse(compiled.assembly(), dialect)
    };
    let kernel_set_refs: Vec<&FormKernels> = kernel_sets.iter().collect();
    let codes: Vec<FormCode> = engine
        .compile_forms(target, &kernel_set_refs, &extract_disassembly)
        .into_iter()
        .map(|kernels| {
            kernels
                .into_iter()
                .map(|result| match result {
                    KernelResult::Compiled(machine) => machine.map_err(|error| error.to_string()),
                    KernelResult::Crashed(how) => Err(how),
                    KernelResult::MissingFeature(what) => Err(what),
                })
                .collect()
        })
        .collect();
    let code_at = |index: usize| codes.get(index).cloned().unwrap_or_else(|| Err("no answer".to_owned()));
    let lines = pairs.into_iter().map(|(form, relaxed, item, before, after)| {
        let difference =
            after.and_then(|after| Ok(CodeDifference::between_forms(&code_at(before)?, &code_at(after)?)));
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
