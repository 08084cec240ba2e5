//! The folder of `--baseline`: written, or compared with what compilers make now.

use std::path::{Path, PathBuf};

use ::campaign::compiling::Compiled;
use codegen::baseline::ChangeKind;
use codegen::{CodeBaseline, FormKernel, Machine};

use crate::arguments::Codegen;
use crate::exit::{Failure, Outcome};
use crate::output::{say, write_file};

use super::engine::{Asking, Made, Question, program};
use super::report::Printer;
use super::targets::Target;
use super::{Asked, by_device};

/// Runs it. A change is shown and changes no exit code: it is for a reviewer.
///
/// # Errors
/// When a file cannot be read or written, or holds no baseline.
pub fn baselines(
    arguments: &Codegen,
    folder: &Path,
    asked: &Asked,
    printer: &mut Printer,
) -> Result<Outcome, Failure> {
    let asking = Asking { forms: false, patience: arguments.timeout, misbehave: arguments.misbehave.clone() };
    let program = program()?;
    let mut outcome = Outcome::Success;
    by_device(
        asked,
        |target| baseline(&asking, &program, target, asked),
        |target, (now, crashed): (CodeBaseline, Vec<String>)| {
            for how in crashed {
                say(&format!("{}: {how}", target.name));
                outcome.note(Outcome::RuleBroken);
            }
            let path = file_of(folder, target);
            let text = match std::fs::read_to_string(&path) {
                Ok(text) if !arguments.bless => Some(text),
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::environment_message(format!("{}: {error}", path.display())));
                }
                _ => None,
            };
            let Some(text) = text else {
                let about = [target.plain_name().to_owned(), target.driver()];
                std::fs::create_dir_all(folder).map_err(|error| {
                    Failure::environment_message(format!("{}: {error}", folder.display()))
                })?;
                write_file(&path, now.print(&about).as_bytes())?;
                return printer.text(&format!(
                    "{}: {} kernels written\n",
                    path.display(),
                    now.sections.len()
                ));
            };
            let old = CodeBaseline::parse(&text)
                .map_err(|error| Failure::input_message(format!("{}: {error}", path.display())))?;
            let mut changes = old.changes(&now);
            // What was not asked about has not gone.
            changes.retain(|change| change.kind != ChangeKind::Gone || asked.whole);
            let mut told = String::new();
            for change in &changes {
                let word = match change.kind {
                    ChangeKind::New => "new",
                    ChangeKind::Gone => "gone",
                    ChangeKind::Changed => "changed",
                };
                told += &format!("{}: {word}: {}\n", path.display(), change.section);
                for line in &change.lines {
                    told += &format!("    {line}\n");
                }
            }
            told += &format!(
                "{}: {} of {} kernels differ\n",
                path.display(),
                changes.len(),
                now.sections.len().max(old.sections.len())
            );
            printer.text(&told)
        },
    )?;
    Ok(outcome)
}

/// `DIR/radv-navi31.txt`: without the version, so that an upgrade changes the file.
fn file_of(folder: &Path, target: &Target) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = target.plain_name().chars().map(plain).collect();
    folder.join(format!("{name}.txt"))
}

/// What has to do with memory in the code of every kernel, and what ended a compiler.
fn baseline(asking: &Asking, program: &Path, target: &Target, asked: &Asked) -> (CodeBaseline, Vec<String>) {
    let mut questions: Vec<&Question> = Vec::new();
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
    let keep =
        |_: &Question, _: &FormKernel, compiled: &Compiled| match Machine::read(compiled.assembly(), dialect)
        {
            Ok(machine) => {
                let skeleton = machine.skeleton();
                if skeleton.is_empty() { machine.normal() } else { skeleton }
            }
            Err(error) => vec![format!("({error})")],
        };
    let mut baseline = CodeBaseline::default();
    let mut crashed = Vec::new();
    let answers = asking.ask(program, target, &questions, &keep);
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
