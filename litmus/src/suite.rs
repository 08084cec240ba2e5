//! Suites: files that select tests by id.
//!
//! A suite has one glob per line. `*` and `?` stay within one folder, `**` crosses folders, `[ab]` and
//! `{a,b}` are alternatives. A line that begins with `!` removes what earlier lines selected; `#` begins a
//! comment. Words after an `@` select one variant of the tests: `mp/*` and `mp/*@split` are different tests,
//! and `mp/*@size-{1,33}` selects two variants. The order of lines affects the order of the variants of a
//! test, not the order of tests.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use miette::{Diagnostic, NamedSource};
use thiserror::Error;

use crate::span::Span;

/// A parsed suite.
#[derive(Clone, Debug)]
pub struct Suite {
    name: String,
    text: String,
    patterns: Vec<SuiteLine>,
    /// The globs of the lines; a pattern refers to its index.
    globs: GlobSet,
}

#[derive(Clone, Debug)]
struct SuiteLine {
    excludes: bool,
    /// Index of the glob in the suite's set, and its text.
    glob: usize,
    text: String,
    /// The words after the `@`; empty without one.
    variant: String,
    span: Span,
}

/// The errors of a suite.
#[derive(Clone, Debug, Error, Diagnostic)]
#[error("read suite {}", .text.name())]
pub struct SuiteErrors {
    #[source_code]
    text: NamedSource<String>,
    #[related]
    errors: Vec<SuiteError>,
}

impl SuiteErrors {
    /// Returns the errors in line order; never empty.
    pub fn errors(&self) -> &[SuiteError] {
        &self.errors
    }
}

/// An error in a suite.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum SuiteError {
    /// A malformed glob.
    #[error("malformed glob: {why}")]
    #[diagnostic(code(litmus::suite::malformed_glob))]
    MalformedGlob {
        /// The reason.
        why: String,
        /// The source position.
        #[label("expected a glob over test ids")]
        span: Span,
    },
    /// Braces that expand to too many variants.
    #[error("more than {MAX_VARIANTS} variants")]
    #[diagnostic(code(litmus::suite::too_many_variants))]
    TooManyVariants {
        /// The source position.
        #[label("expected fewer choices in braces")]
        span: Span,
    },
    /// A line that selects or removes nothing: probably a misspelling.
    #[error("no test matches `{glob}`")]
    #[diagnostic(code(litmus::suite::unmatched_glob))]
    UnmatchedGlob {
        glob: String,
        /// The source position.
        #[label("expected to match the id of a test")]
        span: Span,
    },
}

impl SuiteError {
    /// Returns the position of the erroneous line.
    pub fn span(&self) -> Span {
        match self {
            SuiteError::MalformedGlob { span, .. }
            | SuiteError::TooManyVariants { span }
            | SuiteError::UnmatchedGlob { span, .. } => *span,
        }
    }
}

impl Suite {
    /// Parses a suite.
    ///
    /// # Errors
    ///
    /// Every line that is not a glob.
    pub fn parse(text: &str, name: &str) -> Result<Suite, SuiteErrors> {
        let mut patterns = Vec::new();
        let mut globs = Vec::new();
        let mut errors = Vec::new();
        let mut offset = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let start = offset;
            offset += line.len();
            let body = line.split('#').next().unwrap_or("").trim_end();
            let glob = body.trim_start();
            if glob.is_empty() {
                continue;
            }
            let indent = body.len() - glob.len();
            let span = Span {
                offset: (start + indent) as u32,
                length: glob.len() as u32,
                line: index as u32 + 1,
                column: 1 + body[..indent].chars().count() as u32,
            };
            let (excludes, glob) = match glob.strip_prefix('!') {
                Some(rest) => (true, rest.trim_start()),
                None => (false, glob),
            };
            let (glob, variant) = glob.rsplit_once('@').unwrap_or((glob, ""));
            let Some(variants) = expand_braces(variant) else {
                errors.push(SuiteError::TooManyVariants { span });
                continue;
            };
            let to_line =
                |variant| SuiteLine { excludes, glob: globs.len(), text: glob.to_owned(), variant, span };
            patterns.extend(variants.into_iter().map(to_line));
            globs.push((glob, span));
        }
        let malformed =
            |error: globset::Error, span| SuiteError::MalformedGlob { why: error.kind().to_string(), span };
        // One set is faster than single globs. If it fails, building them one by one finds the malformed
        // lines.
        let globs = glob_set(globs.iter().map(|(glob, _)| *glob)).unwrap_or_else(|error| {
            let failures = globs.iter().filter_map(|(glob, span)| Some((glob_set([*glob]).err()?, *span)));
            errors.extend(failures.map(|(error, span)| malformed(error, span)));
            if let ([], Some((_, span))) = (&errors[..], globs.first()) {
                errors.push(malformed(error, *span));
            }
            GlobSet::empty()
        });
        if errors.is_empty() {
            Ok(Suite { name: name.to_owned(), text: text.to_owned(), patterns, globs })
        } else {
            errors.sort_by_key(|error| error.span().offset);
            Err(SuiteErrors { text: NamedSource::new(name, text.to_owned()), errors })
        }
    }

    /// Returns the suite's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the selected ones of `ids`, in their order, each followed by `@` and the variant if the line
    /// has one.
    ///
    /// # Errors
    ///
    /// Every line that does not match any of `ids`.
    pub fn select<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, SuiteErrors> {
        let mut matched = vec![false; self.patterns.len()];
        let mut selected = Vec::new();
        for id in ids {
            // For each variant, in line order: true if the last line that matches it selects it.
            let mut selections: Vec<(&str, bool)> = vec![("", false)];
            let globs = self.globs.matches(id);
            for (pattern, matched) in self.patterns.iter().zip(&mut matched) {
                if globs.contains(&pattern.glob) {
                    *matched = true;
                    match selections.iter_mut().find(|(variant, _)| *variant == pattern.variant) {
                        Some((_, is_selected)) => *is_selected = !pattern.excludes,
                        None => selections.push((&pattern.variant, !pattern.excludes)),
                    }
                }
            }
            selected.extend(selections.iter().filter(|(_, choose)| *choose).map(
                |(variant, _)| match *variant {
                    "" => id.to_owned(),
                    variant => format!("{id}@{variant}"),
                },
            ));
        }
        let errors: Vec<SuiteError> = self
            .patterns
            .iter()
            .zip(&matched)
            .filter(|(_, matched)| !**matched)
            .map(|(pattern, _)| SuiteError::UnmatchedGlob { glob: pattern.text.clone(), span: pattern.span })
            .collect();
        if errors.is_empty() {
            Ok(selected)
        } else {
            Err(SuiteErrors { text: NamedSource::new(&self.name, self.text.clone()), errors })
        }
    }
}

/// Builds a set of globs over ids.
///
/// # Errors
///
/// The first malformed glob, or a set that is too large.
pub fn glob_set<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(GlobBuilder::new(glob).literal_separator(true).build()?);
    }
    // Unlike a matcher of one glob, a set reports a glob that is too large instead of aborting.
    set.build()
}

/// The maximum number of variants that braces may expand to.
pub const MAX_VARIANTS: usize = 1_000;

/// Expands the braces of a variant: `size-{1,33}.phi` gives two. `None` for more than [`MAX_VARIANTS`].
///
/// Without a matching pair of braces the text stays unchanged.
pub fn expand_braces(variant: &str) -> Option<Vec<String>> {
    let mut all = vec![variant.to_owned()];
    // Each round replaces the first braces of each variant, until none are left.
    loop {
        let mut next = Vec::new();
        let mut replaced = false;
        for variant in &all {
            let parts = variant.split_once('{');
            let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
            match parts {
                Some((before, (choices, after))) => {
                    replaced = true;
                    next.extend(choices.split(',').map(|choice| format!("{before}{choice}{after}")));
                }
                None => next.push(variant.clone()),
            }
            if next.len() > MAX_VARIANTS {
                return None;
            }
        }
        if !replaced {
            return Some(all);
        }
        all = next;
    }
}
