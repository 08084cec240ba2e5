//! User shaders: compiles their sources and selects their entry points.

pub mod race;
pub mod read;
pub mod refine;
pub mod source;

use frontend::{AnalysisOptions, Problem, Refusal, SourcePosition, SpirvModule};

use crate::similar::meant;

/// Returns the options for each entry point of a module, or for the one that they name. Warns of inputs that
/// the module does not use.
///
/// # Errors
/// If inputs name nothing in the module, or have the wrong type.
pub fn entries(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Result<Vec<AnalysisOptions>, Refusal> {
    let options = &frontend::resolve_names(module, options)?;
    for foreign in frontend::unused_inputs(module, options)? {
        tracing::warn!("{file}: unused input: {foreign}");
    }
    let named = match &options.entry {
        Some(entry) => vec![entry.clone()],
        None => module.entry_points().into_iter().map(str::to_owned).collect(),
    };
    Ok(named.into_iter().map(|entry| AnalysisOptions { entry: Some(entry), ..options.clone() }).collect())
}

/// Formats a refusal, with a suggestion for a misspelled name.
pub fn words(refusal: &Refusal) -> String {
    let meant = match &refusal.what {
        Problem::Claim { word: Some((word, known)), .. } => meant(word, known.iter().map(String::as_str)),
        _ => String::new(),
    };
    format!("{refusal}{meant}")
}

/// Formats a refusal with its file and line.
pub fn told(file: &str, refusal: &Refusal) -> String {
    let blank = if matches!(refusal.place, SourcePosition::Line(_)) { "" } else { " " };
    format!("{file}:{blank}{}", words(refusal))
}

/// Returns the source file and line of a position in a module; `file` is the module's own file.
pub fn placed(file: &str, module: &SpirvModule, line: u32, place: SourcePosition) -> (String, Option<u32>) {
    let source = module.source_line(line);
    let named = source.filter(|source| !source.file.is_empty()).map(|source| source.file.clone());
    let line = match (source, place) {
        (Some(source), _) => Some(source.line),
        (None, SourcePosition::Line(line)) => Some(line),
        (None, _) => None,
    };
    (named.unwrap_or_else(|| file.to_owned()), line)
}
