//! `lint`: what can be said of a shader without a grid.

use frontend::{Lint, Place};
use results::wire::{FindingPlace, FindingRecord, LINT_SCHEMA, LintLine};

use crate::arguments::{LintArguments, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, say};
use crate::source;

/// Runs the command.
///
/// # Errors
/// When a shader cannot be read.
pub fn lint(arguments: &LintArguments, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.shaders.is_empty() {
        let rules = frontend::RULES.iter();
        let rules = rules.map(|(name, about, clause)| format!("lint:{name}  {about} ({clause})\n"));
        Data::new().print(&rules.collect::<String>())?;
        return Ok(Outcome::Success);
    }
    let mut text = String::new();
    for file in &arguments.shaders {
        if !source::is_shader(file) {
            return Err(Failure::input_message(format!("{file}: no shader by its extension")));
        }
        let wrong = |what: String| Failure::input_message(format!("{file}:{what}"));
        let shader = source::load(file, &arguments.kernel).map_err(|error| error.failure())?;
        let module = frontend::read(&shader.module).map_err(|refusal| wrong(refusal.to_string()))?;
        if let Some(compiler) = shader.compiler.as_ref().filter(|_| !quiet) {
            say(&format!("{file}: compiled by {compiler}"));
        }
        let found = frontend::lint(&module);
        let findings: Vec<FindingRecord> = found.iter().map(|lint| finding(file, &module, lint)).collect();
        if arguments.format == ListFormat::Json {
            let line = LintLine { schema: LINT_SCHEMA.to_owned(), file: file.clone(), findings };
            let line = serde_json::to_string(&line).map_err(Failure::environment_error)?;
            text += &format!("{line}\n");
            continue;
        }
        for finding in &findings {
            let place = finding.at.first();
            let file = place.and_then(|place| place.file.as_deref()).unwrap_or(file);
            let line = place.and_then(|place| place.line).map_or(String::new(), |line| format!(":{line}"));
            text += &format!("{file}{line}: {}: {}\n", finding.kind, finding.message);
        }
    }
    Data::new().print(&text)?;
    Ok(Outcome::Success)
}

fn finding(file: &str, module: &frontend::Module, lint: &Lint) -> FindingRecord {
    let (file, line) = match (module.source_line(lint.at.line), lint.at.place) {
        (Some(source), _) if source.file.is_empty() => (file.to_owned(), Some(source.line)),
        (Some(source), _) => (source.file.clone(), Some(source.line)),
        (None, Place::Line(line)) => (file.to_owned(), Some(line)),
        (None, Place::Word(_) | Place::Module) => (file.to_owned(), None),
    };
    FindingRecord {
        kind: format!("lint:{}", lint.rule),
        message: format!("{} ({})", lint.message, lint.clause),
        at: vec![FindingPlace { file: Some(file), line, invocation: None, access: None }],
        mend: Vec::new(),
    }
}
