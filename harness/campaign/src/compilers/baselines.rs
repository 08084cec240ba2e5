//! Baselines of machine code: the memory instructions of every kernel, for comparison with an earlier
//! compiler.

use std::path::{Path, PathBuf};

use codegen::baseline::BaselineChangeKind;
use codegen::{CodeBaseline, Disassembly, FormKernel};

use super::engine::{CompilerEngine, FormKernels, KernelResult};
use super::targets::CompilerTarget;
use super::{CodegenRequest, for_each_device};
use crate::Failure;
use crate::compile_worker::CompilationResult;

/// Compiles every kernel on every device, and delivers for each device its baseline and the compiler crashes.
///
/// # Errors
/// Those of `deliver`.
pub fn compute_baselines(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    mut deliver: impl FnMut(&CompilerTarget, (CodeBaseline, Vec<String>)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for_each_device(request, |target| compute_baseline(engine, target, request), &mut deliver)
}

/// Lists the differences between two baselines. Missing kernels count only for a whole suite.
pub fn describe_differences(
    old: &CodeBaseline,
    new: &CodeBaseline,
    is_whole_suite: bool,
    file: &Path,
) -> String {
    let mut changes = old.changed_sections(new);
    changes.retain(|change| change.kind != BaselineChangeKind::Removed || is_whole_suite);
    let file = file.display();
    let mut text = String::new();
    for change in &changes {
        let word = match change.kind {
            BaselineChangeKind::Added => "new",
            BaselineChangeKind::Removed => "gone",
            BaselineChangeKind::Changed => "changed",
        };
        text += &format!("{file}: {word}: {}\n", change.section);
        for line in &change.lines {
            text += &format!("    {line}\n");
        }
    }
    let all = new.sections.len().max(old.sections.len());
    text + &format!("{file}: {} of {all} kernels differ\n", changes.len())
}

/// Returns `DIR/radv-navi31.txt`. It has no driver version, so that an upgrade changes the file.
pub fn baseline_path(folder: &Path, target: &CompilerTarget) -> PathBuf {
    let sanitize = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = target.name_without_version().chars().map(sanitize).collect();
    folder.join(format!("{name}.txt"))
}

/// Returns the memory instructions of every kernel, and the compiler crashes.
fn compute_baseline(
    engine: &CompilerEngine,
    target: &CompilerTarget,
    request: &CodegenRequest,
) -> (CodeBaseline, Vec<String>) {
    let mut kernel_sets: Vec<&FormKernels> = Vec::new();
    let mut ids = Vec::new();
    for (item, forms) in request.tests.iter().zip(request.forms_for(target)) {
        for kernel_set in forms.iter().filter_map(|form| form.kernels.as_ref().ok()) {
            if target.missing_feature(&kernel_set.kernels, &item.test.metadata.needs).is_none() {
                kernel_sets.push(kernel_set);
                ids.push(&item.id);
            }
        }
    }
    let dialect = target.dialect();
    let extract_skeleton =
        |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| match Disassembly::parse(
            compiled.assembly(),
            dialect,
        ) {
            Ok(machine) => {
                let skeleton = machine.memory_skeleton();
                if skeleton.is_empty() { machine.normalized_lines() } else { skeleton }
            }
            Err(error) => vec![format!("({error})")],
        };
    let mut baseline = CodeBaseline::default();
    let mut crashes = Vec::new();
    let answers = engine.compile_forms(target, &kernel_sets, &extract_skeleton);
    for ((kernel_set, results), id) in kernel_sets.iter().zip(answers).zip(ids) {
        for (unit, result) in kernel_set.kernels.iter().zip(results) {
            let section = format!("{id} {} {}", unit.form, unit.name);
            match result {
                KernelResult::Compiled(lines) => {
                    baseline.sections.insert(section, lines);
                }
                KernelResult::Crashed(how) => crashes.push(format!("{section}: {how}")),
                KernelResult::MissingFeature(_) => {}
            }
        }
    }
    (baseline, crashes)
}
