//! Machine code in the reports of other commands, with an explanation or a violation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codegen::Form;
use litmus::Test;
use results::wire::{
    CodegenForm, CodegenKernel, CodegenLine, MACHINE_CODE_SCHEMA, MachineCodeLine, RunLine, VerdictWord,
};
use results::write::code::EXECUTABLE_PROPERTIES_EXTENSION;
use results::write::codegen::CodegenView;
use runner::RunVariant;
use shaders::Pipelines;
use shaders::variant::ReferenceAliasing;

use super::engine::{CompilerEngine, KernelResult};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, code_lines};
use crate::compile_worker::KernelToCompile;
use crate::forms::ReducedForm;
use crate::kinds::litmus::plan::LitmusPlan;
use crate::kinds::litmus::planned::PlannedTest;
use crate::{Failure, probe, targets};

/// Invocations of a workgroup in tests where each thread has one invocation; the default of `codegen`.
const WORKGROUP_LANES: u32 = 64;
/// Time limit of a compiler when the user requested the code.
pub const COMPILER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a compiler at the end of a run, when the time of the run has passed.
const SHORT_COMPILER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of all compilers together at the end of a run.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the form of the kernels that a variant dispatches.
fn form_of_variant(variant: &RunVariant) -> Form {
    match (variant.pipelines, variant.shader.reference_aliasing) {
        (Pipelines::Merged, _) => Form::Merged,
        (Pipelines::Split, ReferenceAliasing::Restrict) => Form::Restrict,
        (Pipelines::Split, ReferenceAliasing::Aliased) if variant.shader.readonly => Form::ReadOnly,
        (Pipelines::Split, ReferenceAliasing::Aliased) => Form::Split,
    }
}

/// Compiles the threads of a test and aligns the code with the test.
///
/// # Errors
/// If no worker can be started.
pub fn compile_threads(
    argument: &str,
    id: &str,
    test: &Test,
    variant: RunVariant,
    target: &CompilerTarget,
    timeout: Duration,
) -> Result<CodegenLine, Failure> {
    let item = CompiledTest {
        id: id.to_owned(),
        argument: argument.to_owned(),
        test: Arc::new(test.clone()),
        variant,
    };
    let request = CodegenRequest::new(
        vec![item],
        vec![target.clone()],
        vec![form_of_variant(&variant)],
        WORKGROUP_LANES,
        false,
    );
    let mut lines = code_lines::compile_lines(
        &CompilerEngine::new(timeout, None)?,
        target,
        &request,
        Some(CodegenView::Code),
    );
    lines.pop().ok_or_else(|| Failure::environment_message("no answer for the test".to_owned()))
}

/// Returns the machine code of the tests of a run that violate the model, with the transformations that they need.
/// `earlier_records` are those of an earlier process.
///
/// The simulated GPU has no machine code, and a record only for a reduced form. After the time limit, records contain the reason
/// instead of code.
///
/// # Errors
/// If no worker can be started.
pub fn violation_records(
    plan: &LitmusPlan,
    run_lines: &[RunLine],
    earlier_records: Vec<MachineCodeLine>,
    reduced: &[ReducedForm],
) -> Result<Vec<MachineCodeLine>, Failure> {
    let deadline = Instant::now() + RUN_END_TIMEOUT;
    let engine = CompilerEngine::new(SHORT_COMPILER_TIMEOUT, None)?;
    let mut records = Vec::new();
    // Devices that cannot print machine code, with the missing extension.
    let mut missing_extensions: BTreeMap<&str, String> = BTreeMap::new();
    for line in run_lines.iter().filter(|line| line.verdict == VerdictWord::Violates) {
        if let Some(earlier) = earlier_records
            .iter()
            .find(|known_record| (&known_record.id, &known_record.device) == (&line.id, &line.device))
        {
            records.push(earlier.clone());
            continue;
        }
        let Some(run_target) = plan.targets.iter().find(|target| target.name == line.device) else {
            continue;
        };
        let Some(item) = plan.tests.iter().find(|item| item.loaded.source.id == line.id) else { continue };
        let form = reduced.iter().find(|form| (&form.id, &form.device) == (&line.id, &line.device));
        let is_simulated = probe::is_simulated(&run_target.listed);
        if is_simulated && form.is_none() {
            continue;
        }
        let target = CompilerTarget::from_run_target(run_target);
        let mut record = MachineCodeLine {
            schema: MACHINE_CODE_SCHEMA.to_owned(),
            id: line.id.clone(),
            device: line.device.clone(),
            driver: target.driver(),
            no_code_reason: missing_extensions.get(line.device.as_str()).cloned(),
            transformations: form.map(|form| form.transformations.clone()),
            ..MachineCodeLine::default()
        };
        if is_simulated {
            record.no_code_reason = Some("the simulated GPU has none".to_owned());
        } else if record.no_code_reason.is_none() && Instant::now() >= deadline {
            record.no_code_reason = Some("the time of the run was used up".to_owned());
        }
        if record.no_code_reason.is_none() {
            match compile_run_kernels(&engine, item, run_target, &target) {
                Ok(forms) => {
                    record.ran = forms;
                    let (source, test) = (&item.loaded.source, &item.loaded.test);
                    let (argument, id) = (&source.argument, &source.id);
                    let thread_code =
                        compile_threads(argument, id, test, item.variant, &target, SHORT_COMPILER_TIMEOUT)?;
                    record.kernels = thread_code.kernels.into_iter().map(without_compile_time).collect();
                    record.replay = thread_code.replay;
                }
                Err(NoCodeReason::MissingFeature(what)) => {
                    if what == EXECUTABLE_PROPERTIES_EXTENSION {
                        missing_extensions.insert(&line.device, what.clone());
                    }
                    record.no_code_reason = Some(what);
                }
                Err(NoCodeReason::Other(why)) => record.no_code_reason = Some(why),
            }
        }
        records.push(record);
    }
    Ok(records)
}

/// Removes the compile time, which would make records of the same code differ.
fn without_compile_time(kernel: CodegenKernel) -> CodegenKernel {
    CodegenKernel { micros: None, ..kernel }
}

/// Why a driver returned no machine code.
enum NoCodeReason {
    /// The device lacks this feature, for any kernel.
    MissingFeature(String),
    Other(String),
}

/// Returns the kernels that the run dispatched, as the driver prints them.
fn compile_run_kernels(
    engine: &CompilerEngine,
    item: &PlannedTest,
    run_target: &targets::DeviceTarget,
    target: &CompilerTarget,
) -> Result<Vec<CodegenForm>, NoCodeReason> {
    let test = &item.loaded.test;
    let runnable = run_target.compile_test(test, item.variant).map_err(NoCodeReason::Other)?;
    let parts: Vec<_> = runnable.program.phases.iter().flat_map(|phase| &phase.kernels).collect();
    let kernels: Vec<KernelToCompile> =
        parts.iter().map(|part| KernelToCompile::from(&part.kernel)).collect();
    let mut forms = Vec::new();
    for (part, result) in parts.into_iter().zip(engine.compile_kernels(target, &kernels)) {
        let names: Vec<String> =
            part.threads.iter().map(|thread| format!("P{}", test.thread(*thread).number)).collect();
        match result {
            KernelResult::Compiled(compiled) if compiled.assembly().trim().is_empty() => {
                return Err(NoCodeReason::Other("the driver does not disassemble its code".to_owned()));
            }
            KernelResult::Compiled(compiled) => {
                forms.push(CodegenForm { name: names.join(","), text: compiled.assembly().to_owned() });
            }
            KernelResult::MissingFeature(what) => return Err(NoCodeReason::MissingFeature(what)),
            KernelResult::Crashed(how) => return Err(NoCodeReason::Other(how)),
        }
    }
    Ok(forms)
}
