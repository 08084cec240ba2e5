//! Test sources: a text with its origin, and the test parsed from it.

use std::path::PathBuf;

use litmus::{Dialect, Test};
use model::Model;
use results::wire::RejectedLine;
use shaders::CompileError;
use shaders::rules::find_offending_span;
use shaders::variant::CarrierStage;

use crate::Failure;

/// A text that should contain a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSource {
    /// The path in its suite or folder without extension; unique among the sources of one command.
    pub id: String,
    /// The file, as messages name it.
    pub file: String,
    /// The argument on a command line.
    pub argument: String,
    /// The variant for a device: the part of the id after `@`.
    pub variant: String,
    /// The origin. Sources with different origins are different tests, even with the same name.
    pub origin: SourceOrigin,
    /// The text, or why it cannot be read.
    pub text: Result<String, SourceReadError>,
}

/// Where a text is read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceOrigin {
    /// An embedded test with this id.
    Embedded(String),
    /// A file, by its canonical path if it has one.
    File(PathBuf),
    StandardInput,
}

/// The error of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReadError {
    pub what: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// A parsed test with its source.
#[derive(Clone, Debug)]
pub struct LoadedTest {
    pub source: TestSource,
    pub text: String,
    pub test: Test,
}

impl LoadedTest {
    /// Converts the test to the program that a device runs.
    ///
    /// # Errors
    /// If the test does not have such a program.
    pub fn to_device_test(&self) -> Result<Test, Failure> {
        litmus::convert::to_device_program(&self.test).map_err(|error| {
            let (file, line) = (&self.source.file, error.span().line);
            Failure::input_message(format!("{file}:{line}: no kernel: {error}"))
        })
    }

    /// Returns the failure for a test without kernels in a stage, with the position of the unsupported
    /// instruction if there is one.
    pub fn no_kernel_failure(&self, stage: CarrierStage, error: &CompileError) -> Failure {
        let place = match find_offending_span(&self.test, stage, error) {
            Some(span) => format!("{}:{}:{}", self.source.file, span.line, span.column),
            None => self.source.file.clone(),
        };
        Failure::input_message(format!("{place}: no kernel: {error}"))
    }
}

/// A source that contains no valid test.
#[derive(Debug)]
pub struct RejectedSource {
    /// The first error, as a published line.
    pub line: RejectedLine,
    /// The error with its diagnostics.
    pub failure: Failure,
}

impl RejectedSource {
    /// Rejects a file with an error that has no position.
    pub fn without_position(file: &str, error: String) -> RejectedSource {
        let failure = Failure::input_message(format!("{file}: {error}"));
        RejectedSource { line: RejectedLine { file: file.to_owned(), error, line: 1, column: 1 }, failure }
    }

    /// Rejects a valid file that has no answer for a reason.
    pub fn without_answer(file: &str, reason: &str) -> RejectedSource {
        let failure = Failure::environment_message(format!("{file}: {reason}"));
        RejectedSource { failure, ..RejectedSource::without_position(file, reason.to_owned()) }
    }
}

impl TestSource {
    /// Returns the same test in a variant.
    pub(crate) fn with_variant(self, variant: &str) -> TestSource {
        if self.text.is_err() || variant.is_empty() {
            return self;
        }
        TestSource {
            id: format!("{}@{variant}", self.id),
            argument: format!("{}@{variant}", self.argument),
            variant: variant.to_owned(),
            ..self
        }
    }

    /// Returns the same test with its variant replaced.
    pub(crate) fn with_variant_replaced(mut self, variant: &str) -> TestSource {
        let suffix = format!("@{}", self.variant);
        for name in [&mut self.id, &mut self.argument] {
            if let Some(plain) = name.strip_suffix(&suffix) {
                *name = plain.to_owned();
            }
        }
        self.with_variant(variant)
    }

    /// Returns true if a model judges the dialect of the test. An invalid test is reported later and counts
    /// as judged.
    pub fn is_judged_by(&self, model: &Model) -> bool {
        let test = self.text.as_ref().ok().and_then(|text| litmus::parse(text, &self.file).ok());
        test.is_none_or(|test| model.supports_dialect(test.dialect))
    }

    /// Returns true if a model judges the program that a device runs for the test.
    pub fn is_device_program_judged_by(&self, model: &Model) -> bool {
        self.is_judged_by(model) || model.supports_dialect(Dialect::Vulkan)
    }

    /// Parses the test.
    ///
    /// # Errors
    /// If the text could not be read, or is not a test.
    pub fn load(mut self) -> Result<LoadedTest, RejectedSource> {
        let file = &self.file;
        let reject = |error: &str, line: u32, column: u32, failure: Failure| {
            let line = RejectedLine { file: file.clone(), error: error.to_owned(), line, column };
            RejectedSource { line, failure }
        };
        let text = std::mem::replace(&mut self.text, Ok(String::new())).map_err(
            |SourceReadError { what, line, column }| {
                let failure = Failure::input_message(format!("{file}:{line}:{column}: {what}"));
                reject(&what, line, column, failure)
            },
        )?;
        let test = litmus::parse(&text, file).map_err(|errors| {
            let messages = errors.messages();
            let all = errors.to_string();
            let (error, line, column) = messages
                .first()
                .map_or((all.as_str(), 1, 1), |first| (first.text.as_str(), first.line, first.column));
            reject(error, line, column, Failure::input(errors.clone()))
        })?;
        // Only the loaded test has the text.
        Ok(LoadedTest { source: TestSource { text: Ok(String::new()), ..self }, text, test })
    }
}
