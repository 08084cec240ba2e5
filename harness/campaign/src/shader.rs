//! Shaders of users: their sources compiled, and what is said of each of their entry points.

pub mod race;
pub mod read;
pub mod source;

use frontend::{AnalysisOptions, Problem, Refusal, SourcePosition, SpirvModule};

use crate::similar::meant;

/// The inputs with each entry point of a module, or with the one that they name. What of a case is not the module's is told.
///
/// # Errors
/// Inputs that name nothing of the module, or do not fit what they name.
pub fn entries(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Result<Vec<AnalysisOptions>, Refusal> {
    for foreign in module.unused_inputs(options)? {
        tracing::warn!("{file} is given {foreign}");
    }
    let named = match &options.entry {
        Some(entry) => vec![entry.clone()],
        None => module.entry_points().into_iter().map(str::to_owned).collect(),
    };
    Ok(named.into_iter().map(|entry| AnalysisOptions { entry: Some(entry), ..options.clone() }).collect())
}

/// What is wrong, with the word that was meant where a claim names what is not there.
pub fn words(refusal: &Refusal) -> String {
    let meant = match &refusal.what {
        Problem::Claim { word: Some((word, known)), .. } => meant(word, known.iter().map(String::as_str)),
        _ => String::new(),
    };
    format!("{refusal}{meant}")
}

/// What is wrong with the shader of a file, behind its name and the line.
pub fn told(file: &str, refusal: &Refusal) -> String {
    let blank = if matches!(refusal.place, SourcePosition::Line(_)) { "" } else { " " };
    format!("{file}:{blank}{}", words(refusal))
}

/// The file and the line of a place in a module; `file` is that of the module itself.
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
