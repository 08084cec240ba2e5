//! Baselines of machine code: the memory instructions of every kernel, for comparison with an earlier
//! compiler.

use std::path::{Path, PathBuf};

use codegen::baseline::BaselineChangeKind;
use codegen::{CodeBaseline, Disassembly, FormKernel};

use super::engine::{Engine, FormKernels, Made};
use super::targets::CompilerTarget;
use super::{CodegenRequest, by_device};
use crate::Failure;
use crate::compiling::CompilationResult;

/// Compiles every kernel on every device, and delivers for each device its baseline and the compiler crashes.
///
/// # Errors
/// Those of `deliver`.
pub fn baselines(
    engine: &Engine,
    asked: &CodegenRequest,
    mut deliver: impl FnMut(&CompilerTarget, (CodeBaseline, Vec<String>)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    by_device(asked, |target| compute_baseline(engine, target, asked), &mut deliver)
}

/// Lists the differences between two baselines. Missing kernels count only if a `whole` suite was compiled.
pub fn differences(old: &CodeBaseline, now: &CodeBaseline, whole: bool, file: &Path) -> String {
    let mut changes = old.changed_sections(now);
    changes.retain(|change| change.kind != BaselineChangeKind::Removed || whole);
    let file = file.display();
    let mut told = String::new();
    for change in &changes {
        let word = match change.kind {
            BaselineChangeKind::Added => "new",
            BaselineChangeKind::Removed => "gone",
            BaselineChangeKind::Changed => "changed",
        };
        told += &format!("{file}: {word}: {}\n", change.section);
        for line in &change.lines {
            told += &format!("    {line}\n");
        }
    }
    let all = now.sections.len().max(old.sections.len());
    told + &format!("{file}: {} of {all} kernels differ\n", changes.len())
}

/// Returns `DIR/radv-navi31.txt`. It has no driver version, so that an upgrade changes the file.
pub fn file_of(folder: &Path, target: &CompilerTarget) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = target.plain_name().chars().map(plain).collect();
    folder.join(format!("{name}.txt"))
}

/// Returns the memory instructions of every kernel, and the compiler crashes.
fn compute_baseline(
    engine: &Engine,
    target: &CompilerTarget,
    asked: &CodegenRequest,
) -> (CodeBaseline, Vec<String>) {
    let mut questions: Vec<&FormKernels> = Vec::new();
    let mut ids = Vec::new();
    for (item, told) in asked.items.iter().zip(asked.told_for(target)) {
        for question in told.iter().filter_map(|form| form.made.as_ref().ok()) {
            if target.lacks(&question.units, &item.test.metadata.needs).is_none() {
                questions.push(question);
                ids.push(&item.id);
            }
        }
    }
    let dialect = target.dialect();
    let keep = |_: &FormKernels, _: &FormKernel, compiled: &CompilationResult| match Disassembly::parse(
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
    let mut crashed = Vec::new();
    let answers = engine.ask(target, &questions, &keep);
    for ((question, made), id) in questions.iter().zip(answers).zip(ids) {
        for (unit, made) in question.units.iter().zip(made) {
            let section = format!("{id} {} {}", unit.form, unit.name);
            match made {
                Made::Compiled(lines) => {
                    baseline.sections.insert(section, lines);
                }
                Made::Crashed(how) => crashed.push(format!("{section}: {how}")),
                Made::Lacks(_) => {}
            }
        }
    }
    (baseline, crashed)
}
