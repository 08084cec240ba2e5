//! The patterns of shaders that are embedded: a folder each, with what it says of itself in `pattern.toml`, the right form in
//! `right.comp`, and each form once more as a litmus test.

use include_dir::{Dir, include_dir};
use results::wire::{PatternChange, PatternForm, PatternRecord};
use serde::Deserialize;

static PATTERNS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/patterns");

/// What is wrong with an embedded pattern.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Its description is not understood.
    #[error("pattern {name}: {error}")]
    Description { name: String, error: toml::de::Error },
    /// A file is missing.
    #[error("pattern {name}: no {file}")]
    Missing { name: String, file: String },
    /// What is to be replaced does not stand in the right form, or more than once.
    #[error("pattern {name}, form {form}: `{text}` stands {count} times in right.comp")]
    Replaced { name: String, form: String, text: String, count: usize },
}

/// `pattern.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    about: String,
    grid: [u32; 3],
    /// Bodies of a loop at most, where the usual is too few.
    unroll: Option<u32>,
    assert: String,
    ends: String,
    clauses: Vec<String>,
    form: Vec<Form>,
}

/// A form but the right one: a file of its own, or the right one with parts replaced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    verdict: String,
    why: String,
    file: Option<String>,
    #[serde(default)]
    replace: Vec<[String; 2]>,
    /// For a file of its own what mends it.
    mend: Option<String>,
}

/// Every pattern, by name.
///
/// # Errors
/// What is wrong with one.
pub fn all() -> Result<Vec<PatternRecord>, PatternError> {
    let mut folders: Vec<_> = PATTERNS.dirs().collect();
    folders.sort_by_key(|folder| folder.path());
    folders.into_iter().map(pattern).collect()
}

fn pattern(folder: &Dir<'_>) -> Result<PatternRecord, PatternError> {
    let name = folder.path().display().to_string();
    let file = |file: &str| {
        let found = folder.get_file(folder.path().join(file)).and_then(|file| file.contents_utf8());
        found.ok_or_else(|| PatternError::Missing { name: name.clone(), file: file.to_owned() })
    };
    // The test that writes them asks for the rest first.
    let litmus = |form: &str| file(&format!("{form}.litmus")).unwrap_or_default().to_owned();
    let described: Description = toml::from_str(file("pattern.toml")?)
        .map_err(|error| PatternError::Description { name: name.clone(), error })?;
    let right = file("right.comp")?;
    let mut forms = vec![PatternForm {
        name: "right".to_owned(),
        verdict: "right".to_owned(),
        why: described.about.clone(),
        mend: Vec::new(),
        glsl: right.to_owned(),
        litmus: litmus("right"),
    }];
    for form in described.form {
        let mut glsl = form.file.as_deref().map(&file).transpose()?.unwrap_or(right).to_owned();
        let mut mend: Vec<PatternChange> = Vec::new();
        for [from, to] in &form.replace {
            let count = glsl.matches(from.as_str()).count();
            if count != 1 {
                let (name, form, text) = (name.clone(), form.name.clone(), from.clone());
                return Err(PatternError::Replaced { name, form, text, count });
            }
            mend.extend(change(&glsl, from, to));
            glsl = glsl.replace(from.as_str(), to);
        }
        mend.extend(form.mend.map(|to| PatternChange { from: String::new(), to }));
        let litmus = litmus(&form.name);
        forms.push(PatternForm { name: form.name, verdict: form.verdict, why: form.why, mend, glsl, litmus });
    }
    let Description { title, about, grid, unroll, assert, ends, clauses, .. } = described;
    Ok(PatternRecord { name, title, about, grid, unroll, assertion: assert, ends, clauses, forms })
}

/// The lines around what is replaced: as they then are, and as they should be.
fn change(right: &str, from: &str, to: &str) -> Option<PatternChange> {
    let at = right.find(from)?;
    let start = right[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = right[at + from.len()..].find('\n').map_or(right.len(), |newline| at + from.len() + newline);
    let (before, after) = (&right[start..at], &right[at + from.len()..end]);
    let lines = |middle: &str| format!("{before}{middle}{after}").trim_end().to_owned();
    // A line that is taken away whole is shown behind the one above it.
    if to.is_empty() && from.ends_with('\n') {
        let above = right[..start].trim_end().rsplit('\n').next().unwrap_or_default();
        let to = format!("{above}\n{}", from.trim_end());
        return Some(PatternChange { from: above.to_owned(), to });
    }
    Some(PatternChange { from: lines(to), to: lines(from) })
}
