//! `check --format html`: a page with the answers for shaders next to their source.

use campaign::shader::race::{findings_page, open_page_findings};
use campaign::shader::source::member_names;
use explanation::ShaderAnswer;
use results::wire::{CheckLine, RaceWord};
use vk_litmus::{CheckAnswer, Checker, ShaderModule, program};

use crate::arguments::Check;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, command_line, report_rejected};

/// Prints one page with the answers for all shaders.
///
/// # Errors
/// Returns an error if the page cannot be written; a mistake in a single shader is shown on the page.
pub fn print_page(arguments: &Check, checker: &Checker) -> Result<Outcome, Failure> {
    let (mut answers, mut outcome) = (Vec::new(), Outcome::Success);
    let inputs = arguments.kernel.shader_inputs(arguments.unroll)?;
    let compilation = arguments.kernel.compilation()?;
    let files: Vec<String> =
        arguments.tests.iter().flat_map(|file| member_names(file, &compilation)).collect();
    let compilation = program::compile_options(compilation);
    for file in &files {
        let shaders = ShaderModule::load(file, &compilation).into_iter();
        let checked = shaders.flat_map(|shader| match shader {
            Ok(shader) => checker.check_shader(&shader, &inputs),
            Err(error) => vec![Err(error)],
        });
        for answer in checked {
            answers.push(match answer {
                Ok(CheckAnswer { line, notes, status, .. }) => {
                    outcome.escalate_to(super::answer_outcome(&line, status, arguments));
                    shader_answer(&line, notes)
                }
                Err(error) => {
                    let line = error.record().clone();
                    report_rejected(&mut outcome, &program::into_failure(error));
                    findings_page(line.file, "refused".to_owned(), vec![line.error], &[], file)
                }
            });
        }
    }
    StandardOutput::new().print(&explanation::shaders(&answers, &command_line()))?;
    Ok(outcome)
}

fn shader_answer(line: &CheckLine, notes: Vec<String>) -> ShaderAnswer {
    let findings = line.findings.as_deref().unwrap_or_default();
    let verdict = match line.race {
        RaceWord::Racy => "racy",
        RaceWord::NeedsInputs => "needs-inputs",
        RaceWord::Free if findings.is_empty() => "race-free",
        _ if !findings.is_empty() => "wrong",
        _ => "not known to be race-free",
    };
    let holds = line.queries.iter().map(|query| {
        let holds = match query.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "is unknown",
        };
        format!("{} {holds}", query.text)
    });
    let notes = holds.chain(notes).collect();
    let title = format!("{} {}", line.file, line.name);
    let mut page = findings_page(title, verdict.to_owned(), notes, findings, &line.file);
    page.findings.extend(open_page_findings(&line.needs, &line.file));
    page
}
