//! Compiles every kernel on every device and reports the resulting code.

use codegen::disassembly::DisassemblerDialect;
use codegen::{Alignment, Disassembly, FormKernel, LineSource, NotMachineCode, align};
use litmus::Test;
use results::wire::{
    CODEGEN_SCHEMA, CodegenCode, CodegenForm, CodegenKernel, CodegenLine, CodegenStatistic, CodegenVerdict,
    UnavailableForm,
};

use results::write::codegen::CodegenView;

use super::engine::{CompilerEngine, FormKernels, KernelResult};
use super::line_source::source_text;
use super::targets::CompilerTarget;
use super::{CodegenRequest, for_each_device, orders, reduce};
use crate::Failure;
use crate::compile_worker::CompilationResult;

/// Compiles every kernel on every device and delivers the lines of each device. The test of the first crash
/// of each kind is reduced.
///
/// # Errors
/// Those of `deliver`.
pub fn compile_on_devices(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    view: Option<CodegenView>,
    mut deliver: impl FnMut(&CompilerTarget, Vec<CodegenLine>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let wants_representations = matches!(view, Some(CodegenView::Forms | CodegenView::Orders));
    let engine = &CompilerEngine { wants_representations, ..engine.clone() };
    for_each_device(
        request,
        |target| reduce_crashes(compile_lines(engine, target, request, view), target, request, engine),
        &mut deliver,
    )
}

/// Returns the lines of a device, in the order of the tests.
pub fn compile_lines(
    engine: &CompilerEngine,
    target: &CompilerTarget,
    request: &CodegenRequest,
    view: Option<CodegenView>,
) -> Vec<CodegenLine> {
    let dialect = target.dialect();
    let extract_kernel = |kernel_set: &FormKernels, unit: &FormKernel, compiled: &CompilationResult| {
        kernel_record(&kernel_set.test, unit, compiled, dialect, target.compiler_target(), view)
    };
    let mut lines: Vec<CodegenLine> = Vec::new();
    let mut kernel_sets: Vec<&FormKernels> = Vec::new();
    // The index of the line of each question.
    let mut line_indices: Vec<usize> = Vec::new();
    for (item, forms) in request.tests.iter().zip(request.forms_for(target)) {
        let mut line = CodegenLine {
            schema: CODEGEN_SCHEMA.to_owned(),
            id: item.id.clone(),
            name: item.test.name.clone(),
            device: target.name.clone(),
            driver: target.driver(),
            verdict: CodegenVerdict::Skipped,
            replay: request.replay_command(item, target),
            ..CodegenLine::default()
        };
        for form in forms {
            match &form.kernels {
                Ok(kernel_set) => {
                    match target.missing_feature(&kernel_set.kernels, &item.test.metadata.needs) {
                        Some(missing) => {
                            line.unavailable_forms
                                .push(UnavailableForm { form: form.form.to_string(), why: missing });
                        }
                        None => {
                            kernel_sets.push(kernel_set);
                            line_indices.push(lines.len());
                        }
                    }
                }
                Err(why) => {
                    line.unavailable_forms
                        .push(UnavailableForm { form: form.form.to_string(), why: why.clone() });
                }
            }
        }
        lines.push(line);
    }
    let answers = engine.compile_forms(target, &kernel_sets, &extract_kernel);
    for ((kernel_set, results), line_index) in kernel_sets.iter().zip(answers).zip(line_indices) {
        let Some(line) = lines.get_mut(line_index) else { continue };
        for (unit, result) in kernel_set.kernels.iter().zip(results) {
            match result {
                KernelResult::Compiled(kernel) => line.kernels.push(kernel),
                KernelResult::Crashed(how) => {
                    line.reason.get_or_insert_with(|| how.clone());
                    line.kernels.push(CodegenKernel {
                        verdict: CodegenVerdict::Crashes,
                        reason: Some(how),
                        ..blank_kernel(unit)
                    });
                }
                KernelResult::MissingFeature(what) => {
                    line.unavailable_forms
                        .push(UnavailableForm { form: kernel_set.form.to_string(), why: what });
                }
            }
        }
    }
    for line in &mut lines {
        line.unavailable_forms.dedup();
        let crashed = line.kernels.iter().any(|kernel| kernel.verdict == CodegenVerdict::Crashes);
        line.verdict = match (crashed, line.kernels.is_empty()) {
            (true, _) => CodegenVerdict::Crashes,
            (false, false) => CodegenVerdict::Compiles,
            (false, true) => CodegenVerdict::Skipped,
        };
        if line.verdict == CodegenVerdict::Skipped {
            line.reason = line.unavailable_forms.first().map(|form| form.why.clone());
        }
    }
    lines
}

/// Reduces the test of the first crash of each kind.
fn reduce_crashes(
    mut lines: Vec<CodegenLine>,
    target: &CompilerTarget,
    request: &CodegenRequest,
    engine: &CompilerEngine,
) -> Vec<CodegenLine> {
    let mut reduced_kinds: Vec<String> = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let Some(how) = line.reason.clone().filter(|_| line.verdict == CodegenVerdict::Crashes) else {
            continue;
        };
        let crashed = line.kernels.iter().find(|kernel| kernel.verdict == CodegenVerdict::Crashes);
        let Some(form) = crashed.and_then(|kernel| kernel.form.parse().ok()) else { continue };
        // Two hangs are of the same kind even if they took different times.
        let kind: String = how.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        let Some(item) = request.tests.get(number).filter(|_| !reduced_kinds.contains(&kind)) else {
            continue;
        };
        line.reduced = Some(reduce::reduce_test(engine, item, form, target, request));
        reduced_kinds.push(kind);
    }
    lines
}

/// The note for kernels whose split barriers use an extension instead of the device feature.
const INTEL_SPLIT_BARRIERS: &str = "split barriers are compiled as SPV_INTEL_split_barrier, which this \
     compiler accepts: the device lacks shaderSplitBarrier";

fn blank_kernel(unit: &FormKernel) -> CodegenKernel {
    CodegenKernel {
        form: unit.form.to_string(),
        kernel: unit.name.clone(),
        role: unit.role.name().to_owned(),
        rewritten_form: unit.intel_split_barriers.then(|| INTEL_SPLIT_BARRIERS.to_owned()),
        ..CodegenKernel::default()
    }
}

fn kernel_record(
    test: &Test,
    unit: &FormKernel,
    compiled: &CompilationResult,
    dialect: &'static DisassemblerDialect,
    compiler_target: &str,
    view: Option<CodegenView>,
) -> CodegenKernel {
    let machine = Disassembly::parse(compiled.assembly(), dialect);
    let (mut code, mut orders) = (Vec::new(), Vec::new());
    if let Ok(machine) = &machine {
        if view == Some(CodegenView::Code) {
            code = named_code(machine, &align(test, unit, machine), &|source| source_text(test, source));
        } else if view == Some(CodegenView::Orders) {
            orders = orders::check_orders(test, unit, machine, compiled, compiler_target);
        }
    }
    let shows_forms = view == Some(CodegenView::Forms);
    CodegenKernel { code, orders, ..described_kernel(blank_kernel(unit), compiled, &machine, shows_forms) }
}

/// Adds figures of the compiler to a record, and its intermediate representations if `shows_forms`.
pub(super) fn described_kernel(
    blank: CodegenKernel,
    compiled: &CompilationResult,
    machine: &Result<Disassembly, NotMachineCode>,
    shows_forms: bool,
) -> CodegenKernel {
    let forms = compiled.forms.iter().filter(|_| shows_forms);
    let statistics = compiled.statistics.iter();
    CodegenKernel {
        micros: Some(compiled.micros),
        instructions: machine.as_ref().ok().map(|machine| machine.instruction_count() as u64),
        not_disassembled: machine.as_ref().err().map(ToString::to_string),
        statistics: statistics
            .map(|(name, value)| CodegenStatistic { name: name.clone(), value: *value })
            .collect(),
        forms: forms.map(|(name, text)| CodegenForm { name: name.clone(), text: text.clone() }).collect(),
        ..blank
    }
}

/// Returns the lines of machine code with the names of their sources.
pub(super) fn named_code(
    machine: &Disassembly,
    alignment: &Alignment,
    name: &dyn Fn(LineSource) -> String,
) -> Vec<CodegenCode> {
    let lines = machine.lines.iter().zip(&alignment.sources);
    lines
        .map(|(line, source)| CodegenCode {
            text: line.text.clone(),
            source: source.map(name),
            words: machine
                .dialect
                .describe_line(&line.text, line.kind)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}
