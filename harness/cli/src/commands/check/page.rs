//! `check --format html`: a page with the answers for shaders next to their source.

use campaign::check::{CheckOptions, Checked, kernel};
use campaign::shader::race::shown;
use explanation::ShaderAnswer;
use frontend::AnalysisOptions;
use model::Model;
use results::wire::{CheckLine, RaceWord};

use crate::arguments::Check;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, reject};

/// Prints one page with the answers for all shaders.
///
/// # Errors
/// Returns an error if the page cannot be written; a mistake in a single shader is shown on the page.
pub fn page(
    arguments: &Check,
    options: &AnalysisOptions,
    model: &Model,
    asked: CheckOptions,
) -> Result<Outcome, Failure> {
    let (mut answers, mut outcome) = (Vec::new(), Outcome::Success);
    let compilation = arguments.kernel.compilation()?;
    for file in &arguments.tests {
        for checked in kernel::check(file, &compilation, options, model, asked) {
            answers.push(match checked {
                Checked::Answered(line, notes, says) => {
                    outcome.note(says);
                    answered(&line, notes)
                }
                Checked::Rejected(no_shader) => {
                    reject(&mut outcome, &no_shader.failure);
                    let line = no_shader.line;
                    shown(line.file, "refused".to_owned(), vec![line.error], &[], file)
                }
            });
        }
    }
    Data::new().print(&explanation::shaders(&answers))?;
    Ok(outcome)
}

fn answered(line: &CheckLine, notes: Vec<String>) -> ShaderAnswer {
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
    shown(format!("{} {}", line.file, line.name), verdict.to_owned(), notes, findings, &line.file)
}
