//! Errors of a cat text, each with its location and the expected syntax.

use super::source::{CatSpan, SourceText};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use std::fmt;
use std::sync::Arc;

/// An error without its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(prefix = "model::cat::", serialize_all = "snake_case")]
pub enum CatProblem {
    #[error("unexpected character {character:?}")]
    UnexpectedCharacter { character: char },
    #[error("unclosed comment")]
    UnterminatedComment,
    #[error("unclosed string")]
    UnterminatedString,
    #[error("text of {bytes} bytes")]
    TextTooLong { bytes: usize, limit: usize },

    #[error("unexpected {found}")]
    #[strum(serialize = "syntax")]
    Unexpected { found: String, expected: &'static str, similar: Option<&'static str> },
    #[error("`{word}` is not supported in cat")]
    Unsupported { word: String },
    #[error("expressions nested more than {limit} deep")]
    NestedTooDeep { limit: usize },
    #[error("more than {limit} statements")]
    TooManyStatements { limit: usize },

    #[error("missing file {name:?}")]
    IncludeNotFound { name: String },
    #[error("circular include of {name:?}")]
    IncludeCycle { name: String, chain: Vec<String> },
    #[error("more than {limit} included files")]
    TooManyIncludes { limit: usize },

    #[error("malformed option `{word}`")]
    MalformedOption { word: String },
    #[error("unknown option `{key}`")]
    UnknownOption { key: String, known: &'static [&'static str] },
    #[error("unknown value `{value}` of the option `{key}`")]
    UnknownOptionValue { key: &'static str, value: String, allowed: &'static [&'static str] },
    #[error("repeated option `{key}`")]
    RepeatedOption { key: &'static str },
    #[error("options after the first comment")]
    MisplacedOptions,

    #[error("unknown name `{name}`")]
    UnknownName { name: String, similar: Option<String> },
    #[error("`{name}` is defined twice")]
    DuplicateName { name: String },
    #[error("the function `{name}` uses itself")]
    RecursiveFunction { name: String },
    #[error("`let rec` defines the function `{name}`")]
    FunctionInRecursion { name: String },
    #[error("the recursive name `{name}` is used in a position that is not monotone")]
    NotMonotone { name: String },
    #[error("recursion inside a recursion")]
    NestedRecursion,

    #[error("{found} where {expected} is expected")]
    WrongKind { expected: &'static str, found: &'static str },
    #[error("a {left} combined with a {right}")]
    MixedKinds { left: &'static str, right: &'static str },
    #[error("`{name}` is not a function")]
    NotAFunction { name: String },
    #[error("the function `{name}` without arguments")]
    FunctionAsValue { name: String },
    #[error("`{name}` without storage classes")]
    MissingIndex { name: String },
    #[error("{found} {} for `{name}`", if *found == 1 { "argument" } else { "arguments" })]
    WrongArgumentCount { name: String, expected: usize, found: usize },
    #[error("total orders of a set that can have members")]
    LinearOrder,
    #[error("unknown procedure `{name}`")]
    UnknownProcedure { name: String },
    #[error("`{name}` is not a family")]
    NotAFamily { name: String },
    #[error("the family `{name}` outside a comprehension")]
    FamilyAsValue { name: String },
    #[error("member of size {found}")]
    WrongMemberSize { expected: usize, found: usize },
    #[error("the model expands to more than {limit} steps")]
    ExpansionTooLarge { limit: usize },
    #[error("{more} more errors are not shown")]
    NotShown { more: usize },
}

impl CatProblem {
    /// Returns the label of the marked location.
    fn label_text(&self) -> String {
        match self {
            CatProblem::UnexpectedCharacter { .. } => "not part of the language".into(),
            CatProblem::UnterminatedComment => "opened here, missing `*)`".into(),
            CatProblem::UnterminatedString => "opened here, missing `\"`".into(),
            CatProblem::TextTooLong { limit, .. } => format!("longer than {limit} bytes"),
            CatProblem::Unexpected { expected, .. } => format!("expected {expected}"),
            CatProblem::Unsupported { .. } => "not supported".into(),
            CatProblem::NestedTooDeep { .. } => "nested too deep".into(),
            CatProblem::TooManyStatements { .. } => "exceeds the limit".into(),
            CatProblem::IncludeNotFound { .. } => "no such file in the folder of the model".into(),
            CatProblem::IncludeCycle { .. } => "includes itself".into(),
            CatProblem::TooManyIncludes { .. } => "exceeds the limit".into(),
            CatProblem::MalformedOption { .. } => "expected `key=value`".into(),
            CatProblem::UnknownOption { .. } => "not an option".into(),
            CatProblem::UnknownOptionValue { .. } => "not a value of this option".into(),
            CatProblem::RepeatedOption { .. } => "already given".into(),
            CatProblem::MisplacedOptions => "must be the first comment of the file".into(),
            CatProblem::UnknownName { .. } => "neither defined above nor a base set or relation".into(),
            CatProblem::DuplicateName { .. } => "already defined".into(),
            CatProblem::RecursiveFunction { .. } => "a function cannot use itself".into(),
            CatProblem::FunctionInRecursion { .. } => "only sets and relations can be recursive".into(),
            CatProblem::NotMonotone { name } => format!("depends on `{name}`, which is being defined"),
            CatProblem::NestedRecursion => "inside the body of another `let rec`".into(),
            CatProblem::WrongKind { found, .. } => format!("this is {found}"),
            CatProblem::MixedKinds { right, .. } => format!("this is a {right}"),
            CatProblem::NotAFunction { .. } => "takes no arguments".into(),
            CatProblem::FunctionAsValue { .. } => "needs its arguments".into(),
            CatProblem::MissingIndex { .. } => "indexed by storage classes".into(),
            CatProblem::WrongArgumentCount { expected, .. } => match expected {
                1 => "takes 1 argument".into(),
                n => format!("takes {n} arguments"),
            },
            CatProblem::LinearOrder => "only `0` can be ordered this way".into(),
            CatProblem::UnknownProcedure { .. } => "not defined above".into(),
            CatProblem::NotAFamily { .. } => {
                "expected `masks`, `classes`, a mask, or a list in braces".into()
            }
            CatProblem::FamilyAsValue { .. } => "only iterated over".into(),
            CatProblem::WrongMemberSize { expected, .. } => format!("expected {expected}, one for each name"),
            CatProblem::ExpansionTooLarge { .. } => "reached here".into(),
            CatProblem::NotShown { .. } => "the last one shown".into(),
        }
    }

    fn help_text(&self) -> Option<String> {
        match self {
            CatProblem::UnknownName { similar: Some(similar), .. } => {
                Some(format!("did you mean `{similar}`?"))
            }
            CatProblem::Unexpected { similar: Some(similar), .. } => {
                Some(format!("did you mean `{similar}`?"))
            }
            CatProblem::UnknownOption { known, .. } => Some(format!("the options are {}", known.join(", "))),
            CatProblem::UnknownOptionValue { key, allowed, .. } => {
                Some(format!("{key} is one of {}", allowed.join(", ")))
            }
            CatProblem::IncludeCycle { chain, name } => {
                Some(format!("{} includes {name}", chain.join(" includes ")))
            }
            CatProblem::WrongKind { expected: "a relation", found: "a set" } => {
                Some("write `[S]` for the identity on the set S".into())
            }
            CatProblem::MixedKinds { .. } => Some("write `[S]` for the identity on the set S".into()),
            CatProblem::LinearOrder => Some(
                "only one order is enumerated for every execution: the modification order of each location"
                    .into(),
            ),
            CatProblem::FamilyAsValue { name } => Some(format!("write `union(M in {name}: …)`")),
            CatProblem::MissingIndex { name } => {
                Some(format!("write `{name}(M)` with M from `union(M in masks: …)`"))
            }
            CatProblem::NotMonotone { .. } => Some(
                "a recursive name must not occur to the right of `\\`, under `~` or in `imm(…)`: the least \
                 fixpoint requires monotone definitions"
                    .into(),
            ),
            _ => None,
        }
    }
}

/// An error in a model's text, with its position.
#[derive(Clone, Debug)]
pub struct CatError {
    /// The error itself.
    pub problem: CatProblem,
    /// The position in the source.
    pub span: CatSpan,
    /// Related positions, each with a description.
    pub related: Vec<(String, CatSpan)>,
    source: NamedSource<Arc<str>>,
}

impl CatError {
    /// Creates the error at a position of `source`.
    pub(crate) fn new(problem: CatProblem, span: CatSpan, source: &SourceText) -> Self {
        CatError {
            problem,
            span,
            related: Vec::new(),
            source: NamedSource::new(&source.name, Arc::clone(&source.text)),
        }
    }

    pub fn file_name(&self) -> &str {
        self.source.name()
    }
}

impl fmt::Display for CatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for CatError {}

fn source_span(span: CatSpan) -> SourceSpan {
    SourceSpan::new((span.offset as usize).into(), span.length as usize)
}

impl Diagnostic for CatError {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(<&'static str>::from(&self.problem)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help_text().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let main =
            LabeledSpan::new_primary_with_span(Some(self.problem.label_text()), source_span(self.span));
        // A diagnostic shows one text: positions in other files are omitted.
        let related = self
            .related
            .iter()
            .filter(|(_, span)| span.source == self.span.source)
            .map(|(text, span)| LabeledSpan::new_with_span(Some(text.clone()), source_span(*span)));
        Some(Box::new(std::iter::once(main).chain(related)))
    }
}

/// All mistakes found in a model.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("read the model {name}")]
pub struct CatErrors {
    /// The name of the model's file.
    pub name: String,
    /// The mistakes in the order in which they were found; never empty.
    #[related]
    pub errors: Vec<CatError>,
}

/// Bound on the errors that are reported for one model.
const MAX_SHOWN_ERRORS: usize = 50;

impl CatErrors {
    /// Creates the error list of the model `name`, truncated for readability. `errors` must not be empty.
    pub(crate) fn new(name: String, mut errors: Vec<CatError>) -> Self {
        let more = errors.len().saturating_sub(MAX_SHOWN_ERRORS);
        errors.truncate(MAX_SHOWN_ERRORS);
        if more > 0
            && let Some(last) = errors.last().cloned()
        {
            errors.push(CatError { problem: CatProblem::NotShown { more }, related: Vec::new(), ..last });
        }
        CatErrors { name, errors }
    }

    /// Names the model's file in each message; a model read from a file has the file's stem as its name.
    #[must_use]
    pub fn with_file_name(mut self, file: &str) -> Self {
        for error in self.errors.iter_mut().filter(|error| error.source.name() == self.name) {
            error.source = NamedSource::new(file, Arc::clone(error.source.inner()));
        }
        file.clone_into(&mut self.name);
        self
    }
}
