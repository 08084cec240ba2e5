//! The embedded shader patterns, one folder each: `pattern.toml` with the description, `right.comp` with the
//! correct form, and each form as a litmus test.

use include_dir::{Dir, include_dir};
use results::wire::{PatternChange, PatternForm, PatternRecord};
use serde::Deserialize;

static PATTERNS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/patterns");

/// A mistake in an embedded pattern.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Its description cannot be parsed.
    #[error("pattern {name}: {error}")]
    InvalidDescription { name: String, error: toml::de::Error },
    /// A file is missing.
    #[error("pattern {name}: no {file}")]
    MissingFile { name: String, file: String },
    /// Text to replace is not exactly once in the correct form.
    #[error("pattern {name}, form {form}: `{text}` stands {count} times in right.comp")]
    NotUniqueReplacement { name: String, form: String, text: String, count: usize },
}

/// `pattern.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternDescription {
    title: String,
    about: String,
    grid: [u32; 3],
    /// Loop bound, if the default is too small.
    unroll: Option<u32>,
    assert: String,
    ends: String,
    clauses: Vec<String>,
    form: Vec<IncorrectForm>,
}

/// An incorrect form: a separate file, or replacements in the correct form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IncorrectForm {
    name: String,
    verdict: String,
    why: String,
    file: Option<String>,
    #[serde(default)]
    replace: Vec<[String; 2]>,
    /// The fix, for a form in a separate file.
    mend: Option<String>,
}

/// Returns every pattern, sorted by name.
///
/// # Errors
/// Returns the first mistake in a pattern.
pub fn load_patterns() -> Result<Vec<PatternRecord>, PatternError> {
    let mut folders: Vec<_> = PATTERNS.dirs().collect();
    folders.sort_by_key(|folder| folder.path());
    folders.into_iter().map(load_pattern).collect()
}

fn load_pattern(folder: &Dir<'_>) -> Result<PatternRecord, PatternError> {
    let name = folder.path().display().to_string();
    let file = |file: &str| {
        let found = folder.get_file(folder.path().join(file)).and_then(|file| file.contents_utf8());
        found.ok_or_else(|| PatternError::MissingFile { name: name.clone(), file: file.to_owned() })
    };
    // Missing litmus files are allowed: the test that generates them reads the other fields first.
    let litmus = |form: &str| file(&format!("{form}.litmus")).unwrap_or_default().to_owned();
    let description: PatternDescription = toml::from_str(file("pattern.toml")?)
        .map_err(|error| PatternError::InvalidDescription { name: name.clone(), error })?;
    let right = file("right.comp")?;
    let mut forms = vec![PatternForm {
        name: "right".to_owned(),
        verdict: "right".to_owned(),
        why: description.about.clone(),
        mend: Vec::new(),
        glsl: right.to_owned(),
        litmus: litmus("right"),
    }];
    for form in description.form {
        let mut glsl = form.file.as_deref().map(&file).transpose()?.unwrap_or(right).to_owned();
        let mut mend: Vec<PatternChange> = Vec::new();
        for [from, to] in &form.replace {
            let count = glsl.matches(from.as_str()).count();
            if count != 1 {
                let (name, form, text) = (name.clone(), form.name.clone(), from.clone());
                return Err(PatternError::NotUniqueReplacement { name, form, text, count });
            }
            mend.extend(pattern_change(&glsl, from, to));
            glsl = glsl.replace(from.as_str(), to);
        }
        mend.extend(form.mend.map(|to| PatternChange { from: String::new(), to }));
        let litmus = litmus(&form.name);
        forms.push(PatternForm { name: form.name, verdict: form.verdict, why: form.why, mend, glsl, litmus });
    }
    let PatternDescription { title, about, grid, unroll, assert, ends, clauses, .. } = description;
    Ok(PatternRecord { name, title, about, grid, unroll, assertion: assert, ends, clauses, forms })
}

/// Returns the lines that contain a replacement, after it (`from`) and before it (`to`).
fn pattern_change(right: &str, from: &str, to: &str) -> Option<PatternChange> {
    let at = right.find(from)?;
    let start = right[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = right[at + from.len()..].find('\n').map_or(right.len(), |newline| at + from.len() + newline);
    let (before, after) = (&right[start..at], &right[at + from.len()..end]);
    let lines = |middle: &str| format!("{before}{middle}{after}").trim_end().to_owned();
    // A line that the replacement deletes is shown after the preceding line.
    if to.is_empty() && from.ends_with('\n') {
        let above = right[..start].trim_end().rsplit('\n').next().unwrap_or_default();
        let to = format!("{above}\n{}", from.trim_end());
        return Some(PatternChange { from: above.to_owned(), to });
    }
    Some(PatternChange { from: lines(to), to: lines(from) })
}
