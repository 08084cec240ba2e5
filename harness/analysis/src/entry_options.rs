//! Entry points and refusals of user shaders, in the same format for every command.

use entry_point::{AnalysisOptions, Problem, Refusal, source_location};
use lint::ValidityRule;
use results::wire::RejectedLine;
use spirv_reader::{SourcePosition, SpirvModule};

use litmus::similar::did_you_mean;

/// The options for each entry point of a module.
#[derive(Debug)]
pub struct EntryOptions {
    /// One for each entry point, or the one that the options name.
    pub entries: Vec<AnalysisOptions>,
    /// Inputs that the module does not use, each as a text.
    pub unused: Vec<String>,
}

/// Returns the options for each entry point of a module, or for the one that they name.
///
/// # Errors
/// If the module breaks a validity rule or has no entry point, or an input names an unknown item of the module or has the wrong type.
pub fn entry_options(module: &SpirvModule, options: &AnalysisOptions) -> Result<EntryOptions, Refusal> {
    check_validity(module, options)?;
    let options = &crate::unused_inputs::resolve_names(module, options)?;
    let unused =
        crate::unused_inputs::unused_inputs(module, options)?.iter().map(ToString::to_string).collect();
    let names = match &options.entry {
        Some(entry) => vec![entry.clone()],
        None => module.entry_points().into_iter().map(str::to_owned).collect::<Vec<_>>(),
    };
    if names.is_empty() {
        let missing = Problem::EntryPoint(module.describe_missing_entry_point());
        return Err(missing.located_at(SourcePosition::Module));
    }
    let entries = names.into_iter().map(|entry| AnalysisOptions { entry: Some(entry), ..options.clone() });
    Ok(EntryOptions { entries: entries.collect(), unused })
}

/// Refuses a module that breaks validity rules.
fn check_validity(module: &SpirvModule, options: &AnalysisOptions) -> Result<(), Refusal> {
    let mut uses = lint::invalid_uses(module);
    // Compilers emit such decorations for valid sources, and classes of memory in relaxed semantics have no effect.
    let is_harmless = |rule| matches!(rule, ValidityRule::ModelDecorations | ValidityRule::ClassHasOrder);
    uses.retain(|one| options.language.is_none() || !is_harmless(one.rule));
    let line_of = |one: &lint::InvalidUse| source_location("", module, one.at.line, one.at.place).1;
    let Some(first) = uses.first() else { return Ok(()) };
    let place = line_of(first).map_or(first.at.place, SourcePosition::Line);
    let texts = uses.iter().enumerate().map(|(at, one)| match line_of(one).filter(|_| at > 0) {
        Some(line) => format!("line {line}: {}", one.message),
        None => one.message.clone(),
    });
    let mut texts: Vec<String> = texts.collect();
    if let (Some(last), Some(one)) = (texts.last_mut(), uses.iter().find(|one| !one.hint.is_empty())) {
        last.push_str(one.hint);
    }
    Err(Problem::Invalid(texts).located_at(place))
}

/// Formats a refusal, with a suggestion for a misspelled name.
pub fn refusal_text(refusal: &Refusal) -> String {
    let suggestion = match &refusal.what {
        Problem::Claim { word: Some((word, known)), .. } => {
            did_you_mean(word, known.iter().map(String::as_str))
        }
        _ => String::new(),
    };
    format!("{refusal}{suggestion}")
}

/// Formats a refusal with its file and line.
pub fn placed_refusal_text(file: &str, refusal: &Refusal) -> String {
    let blank = if matches!(refusal.place, SourcePosition::Line(_)) { "" } else { " " };
    format!("{file}:{blank}{}", refusal_text(refusal))
}

/// Formats a refusal with the source file of its line; `file` is the module's own file.
pub fn source_refusal_text(file: &str, module: &SpirvModule, refusal: &Refusal) -> String {
    let source = match refusal.place {
        SourcePosition::Line(line) => module.file_of(line),
        SourcePosition::Word(_) | SourcePosition::Module => None,
    };
    placed_refusal_text(source.unwrap_or(file), refusal)
}

/// Returns the record of a refusal, with the source file of its line; `file` is the module's own file.
pub fn refusal_record(file: &str, module: Option<&SpirvModule>, refusal: &Refusal) -> RejectedLine {
    let error = refusal_text(&Refusal { place: SourcePosition::Module, ..refusal.clone() });
    let line = match refusal.place {
        SourcePosition::Line(line) => Some(line),
        SourcePosition::Word(_) | SourcePosition::Module => None,
    };
    let source = line.and_then(|line| module?.file_of(line));
    RejectedLine { file: source.unwrap_or(file).to_owned(), error, line: line.unwrap_or(1), column: 1 }
}

/// Returns a line for each use that makes a module invalid, with its place and rule.
pub fn invalid_use_texts(file: &str, module: &SpirvModule) -> Vec<String> {
    let text = |invalid: lint::InvalidUse| {
        let (file, line) = source_location(file, module, invalid.at.line, invalid.at.place);
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let lint::InvalidUse { message, hint, .. } = invalid;
        format!("{file}{line}: the compiler wrote invalid SPIR-V, which changes no answer: {message}{hint}")
    };
    lint::invalid_uses(module).into_iter().map(text).collect()
}
