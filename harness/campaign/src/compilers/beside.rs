//! Machine code for the reports of other commands: next to an explanation or a violation.

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

use super::engine::{Engine, Made};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest, lines};
use crate::compiling::KernelToCompile;
use crate::kinds::litmus::plan::LitmusPlan;
use crate::kinds::litmus::planned::PlannedTest;
use crate::{Failure, probe, targets};

/// Invocations of a workgroup in tests where each thread has one invocation; the default of `codegen`.
const LANES: u32 = 64;
/// Time limit of a compiler when the user requested the code.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of a compiler at the end of a run, when the time of the run has passed.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit of all compilers together at the end of a run.
const PATIENCE_OF_A_RUN: Duration = Duration::from_secs(10);

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
pub fn threads(
    argument: &str,
    id: &str,
    test: &Test,
    variant: RunVariant,
    target: &CompilerTarget,
    patience: Duration,
) -> Result<CodegenLine, Failure> {
    let item = CompiledTest {
        id: id.to_owned(),
        argument: argument.to_owned(),
        test: Arc::new(test.clone()),
        variant,
    };
    let asked =
        CodegenRequest::new(vec![item], vec![target.clone()], vec![form_of_variant(&variant)], LANES, false);
    let mut lines = lines::lines(&Engine::new(patience, None)?, target, &asked, Some(CodegenView::Code));
    lines.pop().ok_or_else(|| Failure::environment_message("no answer for the test".to_owned()))
}

/// Returns the machine code of the tests of a run that violate the model. `known` holds the records of an
/// earlier process.
///
/// The simulated GPU has no machine code and gets no record. After the time limit, records contain the reason
/// instead of code.
///
/// # Errors
/// If no worker can be started.
pub fn violations(
    plan: &LitmusPlan,
    ran: &[RunLine],
    known: Vec<MachineCodeLine>,
) -> Result<Vec<MachineCodeLine>, Failure> {
    let deadline = Instant::now() + PATIENCE_OF_A_RUN;
    let engine = Engine::new(SHORT_PATIENCE, None)?;
    let mut found = Vec::new();
    // Devices that cannot print machine code, with the missing extension.
    let mut lacking: BTreeMap<&str, String> = BTreeMap::new();
    for line in ran.iter().filter(|line| line.verdict == VerdictWord::Violates) {
        if let Some(earlier) = known.iter().find(|one| (&one.id, &one.device) == (&line.id, &line.device)) {
            found.push(earlier.clone());
            continue;
        }
        let Some(of_run) = plan.targets.iter().find(|target| target.name == line.device) else { continue };
        let Some(item) = plan.items.iter().find(|item| item.loaded.source.id == line.id) else { continue };
        if probe::is_sim(&of_run.listed) {
            continue;
        }
        let target = CompilerTarget::of_run(of_run);
        let mut record = MachineCodeLine {
            schema: MACHINE_CODE_SCHEMA.to_owned(),
            id: line.id.clone(),
            device: line.device.clone(),
            driver: target.driver(),
            no_code_reason: lacking.get(line.device.as_str()).cloned(),
            kernels: Vec::new(),
            ran: Vec::new(),
            replay: String::new(),
        };
        if record.no_code_reason.is_none() && Instant::now() >= deadline {
            record.no_code_reason = Some("the time of the run was used up".to_owned());
        }
        if record.no_code_reason.is_none() {
            match that_ran(&engine, item, of_run, &target) {
                Ok(ran) => {
                    record.ran = ran;
                    let (source, test) = (&item.loaded.source, &item.loaded.test);
                    let (argument, id) = (&source.argument, &source.id);
                    let alone = threads(argument, id, test, item.variant, &target, SHORT_PATIENCE)?;
                    record.kernels = alone.kernels.into_iter().map(without_time).collect();
                    record.replay = alone.replay;
                }
                Err(NoCode::Lacks(what)) => {
                    if what == EXECUTABLE_PROPERTIES_EXTENSION {
                        lacking.insert(&line.device, what.clone());
                    }
                    record.no_code_reason = Some(what);
                }
                Err(NoCode::Other(why)) => record.no_code_reason = Some(why),
            }
        }
        found.push(record);
    }
    Ok(found)
}

/// Removes the compile time, which would make records of the same code differ.
fn without_time(kernel: CodegenKernel) -> CodegenKernel {
    CodegenKernel { micros: None, ..kernel }
}

/// Why a driver returned no machine code.
enum NoCode {
    /// The device lacks this feature, for any kernel.
    Lacks(String),
    /// Another error.
    Other(String),
}

/// Returns the kernels that the run dispatched, as the driver prints them.
fn that_ran(
    engine: &Engine,
    item: &PlannedTest,
    of_run: &targets::DeviceTarget,
    target: &CompilerTarget,
) -> Result<Vec<CodegenForm>, NoCode> {
    let test = &item.loaded.test;
    let told = of_run.told(test, item.variant).map_err(NoCode::Other)?;
    let parts: Vec<_> = told.program.phases.iter().flat_map(|phase| &phase.kernels).collect();
    let kernels: Vec<KernelToCompile> =
        parts.iter().map(|part| KernelToCompile::from(&part.kernel)).collect();
    let mut ran = Vec::new();
    for (part, made) in parts.into_iter().zip(engine.compile(target, &kernels)) {
        let names: Vec<String> =
            part.threads.iter().map(|thread| format!("P{}", test.thread(*thread).number)).collect();
        match made {
            Made::Compiled(compiled) if compiled.assembly().trim().is_empty() => {
                return Err(NoCode::Other("the driver does not disassemble its code".to_owned()));
            }
            Made::Compiled(compiled) => {
                ran.push(CodegenForm { name: names.join(","), text: compiled.assembly().to_owned() });
            }
            Made::Lacks(what) => return Err(NoCode::Lacks(what)),
            Made::Crashed(how) => return Err(NoCode::Other(how)),
        }
    }
    Ok(ran)
}
