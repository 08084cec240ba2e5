//! The error of every function of the library.

use campaign::Failure;
use campaign::source::RejectedSource;
use litmus::ParseErrors;
use model::cat::CatErrors;
use results::read::ReadError;
use results::wire::RejectedLine;

/// The class of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is wrong or not supported; the error has the position and what was expected.
    Input,
    /// The shader source has no entry point, for example because other sources include it.
    NoEntryPoint,
    /// A file cannot be read, or a compiler is missing or failed.
    Environment,
}

/// The reason why there is no answer, with the position in the input.
///
/// It displays as `FILE:LINE:COLUMN: MESSAGE`, or as `FILE: MESSAGE` if it is about the whole input.
///
/// ```
/// use vk_litmus::{ErrorKind, LitmusTest};
///
/// let text = "VULKAN SB\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.atom.dvv.sc0 x, 1 ;";
/// let error = LitmusTest::parse_named(text, "mp.litmus").err().ok_or("parsed")?;
/// assert_eq!((error.kind(), error.cause()), (ErrorKind::Input, None));
/// assert_eq!((error.file(), error.line(), error.column()), ("mp.litmus", 4, 9));
/// assert_eq!(error.to_string(), format!("mp.litmus:4:9: {}", error.message()));
/// assert_eq!((error.record().line, error.record().column), (4, 9));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {}", self.file(), self.position_text(), self.message())]
pub struct Error {
    kind: ErrorKind,
    first: RejectedLine,
    others: Vec<RejectedLine>,
    /// True if the first mistake has a position.
    is_placed: bool,
    cause: Option<&'static str>,
    #[cfg(feature = "cli")]
    failure: Box<Failure>,
}

impl Error {
    /// Returns its class.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the file or the name of the text.
    pub fn file(&self) -> &str {
        &self.first.file
    }

    /// Returns the line of the first mistake, from 1; 1 if it is about the whole input.
    pub fn line(&self) -> u32 {
        self.first.line
    }

    /// Returns the column of the first mistake in characters, from 1; 1 if it is about the whole line.
    pub fn column(&self) -> u32 {
        self.first.column
    }

    /// Returns the first mistake in words: what is wrong, and what was expected.
    pub fn message(&self) -> &str {
        let RejectedLine { error, file, .. } = &self.first;
        let without_file = error.strip_prefix(file.as_str()).and_then(|error| error.strip_prefix(": "));
        without_file.unwrap_or(error)
    }

    /// Returns the record of the first mistake, as `check --format json` prints it.
    pub fn record(&self) -> &RejectedLine {
        &self.first
    }

    /// Returns every mistake in the order of the text, the first included.
    ///
    /// ```
    /// let text = "VULKAN SB\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.atom.dvv.sc0 x, 1 ;\nst.atom.dv.sc9 x, 2 ;";
    /// let error = vk_litmus::LitmusTest::parse(text).err().ok_or("parsed")?;
    /// assert_eq!(error.mistakes().map(|mistake| mistake.line).collect::<Vec<_>>(), [4, 5]);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn mistakes(&self) -> impl Iterator<Item = &RejectedLine> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the cause in a few words, without names of the input, to count errors by; `None` if the error
    /// has no class below its kind.
    pub fn cause(&self) -> Option<&'static str> {
        self.cause
    }

    /// Returns the failure that the program prints.
    #[cfg(feature = "cli")]
    pub(super) fn into_failure(self) -> Failure {
        *self.failure
    }

    /// Returns an error for a whole input.
    pub(super) fn for_file(file: &str, failure: Failure) -> Error {
        let error = failure.report().to_string();
        let line = RejectedLine { file: file.to_owned(), error, line: 1, column: 1 };
        Error { is_placed: false, ..Error::with_position(line, failure) }
    }

    fn position_text(&self) -> String {
        if self.is_placed { format!(":{}:{}", self.first.line, self.first.column) } else { String::new() }
    }

    /// Returns the error without a position.
    pub(super) fn without_position(self) -> Error {
        Error { is_placed: false, ..self }
    }

    pub(super) fn with_cause(self, cause: &'static str) -> Error {
        Error { cause: Some(cause), ..self }
    }

    /// Returns the error with another class.
    pub(super) fn with_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }

    /// Returns an error with every mistake; `error` if there is none.
    fn with_mistakes(file: String, mistakes: Vec<RejectedLine>, error: String, failure: Failure) -> Error {
        let mut mistakes = mistakes.into_iter();
        let first = mistakes.next().unwrap_or(RejectedLine { file, error, line: 1, column: 1 });
        Error { others: mistakes.collect(), ..Error::with_position(first, failure) }
    }

    pub(super) fn with_position(first: RejectedLine, failure: Failure) -> Error {
        let kind = match failure {
            Failure::Input(_) => ErrorKind::Input,
            Failure::Environment(_) => ErrorKind::Environment,
        };
        Error {
            kind,
            first,
            others: Vec::new(),
            is_placed: true,
            cause: None,
            #[cfg(feature = "cli")]
            failure: Box::new(failure),
        }
    }
}

impl From<RejectedSource> for Error {
    fn from(rejected: RejectedSource) -> Error {
        let has_position = (rejected.line.line, rejected.line.column) != (1, 1);
        Error { is_placed: has_position, ..Error::with_position(rejected.line, rejected.failure) }
    }
}

impl From<ParseErrors> for Error {
    fn from(errors: ParseErrors) -> Error {
        let file = errors.source_name();
        let to_record = |litmus::error::Message { text: error, line, column, .. }| RejectedLine {
            file: file.to_owned(),
            error,
            line,
            column,
        };
        let mistakes = errors.messages().into_iter().map(to_record).collect();
        Error::with_mistakes(file.to_owned(), mistakes, errors.to_string(), Failure::input(errors))
    }
}

impl From<CatErrors> for Error {
    fn from(errors: CatErrors) -> Error {
        let to_record = |error: &model::cat::CatError| RejectedLine {
            file: error.file_name().to_owned(),
            error: error.to_string(),
            line: error.span.line,
            column: error.span.column,
        };
        let mistakes = errors.errors.iter().map(to_record).collect();
        Error::with_mistakes(errors.name.clone(), mistakes, errors.to_string(), Failure::input(errors))
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        let (path, line) = match &error {
            ReadError::Malformed { path, line, .. } | ReadError::Newer { path, line, .. } => {
                (path, u32::try_from(*line).unwrap_or(u32::MAX))
            }
            ReadError::Io { path, .. }
            | ReadError::NotAFile { path }
            | ReadError::NotResults { path }
            | ReadError::Empty { path } => (path, 1),
        };
        let line =
            RejectedLine { file: path.display().to_string(), error: error.to_string(), line, column: 1 };
        let failure = match error.is_input() {
            true => Failure::input_error(error),
            false => Failure::environment_error(error),
        };
        let is_placed = line.line > 1;
        Error { is_placed, ..Error::with_position(line, failure) }
    }
}
