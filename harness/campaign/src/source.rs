//! A text that should be a test, and where it comes from.

use std::path::PathBuf;

use litmus::{Dialect, Test};
use model::Model;
use results::wire::RejectedLine;
use shaders::CompileError;
use shaders::rules::culprit;
use shaders::variant::Stage;

use crate::Failure;

/// A text that should be a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSource {
    /// Path in its suite or folder without extension; unique among those of one call.
    pub id: String,
    /// The file, as messages name it.
    pub file: String,
    /// How a command line names it.
    pub argument: String,
    /// How it is told to a device: the words behind the `@` of its id.
    pub variant: String,
    /// What it is read from. What is not the same is another test, whatever it is called.
    pub origin: Origin,
    /// Its text, or why there is none.
    pub text: Result<String, Unreadable>,
}

/// What a text is read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It is inside the program, by this id.
    Embedded(String),
    /// A file, by its path without links, where it has one.
    File(PathBuf),
    /// Standard input.
    StandardInput,
}

/// Why a file has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong.
    pub what: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A test with where it comes from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Where it comes from.
    pub source: TestSource,
    /// Its text.
    pub text: String,
    /// The test.
    pub test: Test,
}

impl Loaded {
    /// The program that a device runs for it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn placed(&self) -> Result<Test, Failure> {
        litmus::convert::for_device(&self.test).map_err(|error| {
            let (file, line) = (&self.source.file, error.span().line);
            Failure::input_message(format!("{file}:{line}: no kernel: {error}"))
        })
    }

    /// What is said where there are no kernels for it in a stage: with the place of the instruction that it is refused for, where it is one.
    pub fn no_kernel(&self, stage: Stage, error: &CompileError) -> Failure {
        let place = match culprit(&self.test, stage, error) {
            Some(span) => format!("{}:{}:{}", self.source.file, span.line, span.column),
            None => self.source.file.clone(),
        };
        Failure::input_message(format!("{place}: no kernel: {error}"))
    }
}

/// A source that is no test: what is wrong with it.
#[derive(Debug)]
pub struct Rejected {
    /// Its first mistake, as it is published.
    pub line: RejectedLine,
    /// The diagnostic for people.
    pub failure: Failure,
}

impl Rejected {
    /// What is wrong with a file as a whole.
    pub fn whole(file: &str, error: String) -> Rejected {
        let failure = Failure::input_message(format!("{file}: {error}"));
        Rejected { line: RejectedLine { file: file.to_owned(), error, line: 1, column: 1 }, failure }
    }
}

impl TestSource {
    /// The same test, told in another way.
    pub(crate) fn told(self, variant: &str) -> TestSource {
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

    /// The same test, told in another way than it is.
    pub(crate) fn told_anew(mut self, variant: &str) -> TestSource {
        let behind = format!("@{}", self.variant);
        for name in [&mut self.id, &mut self.argument] {
            if let Some(plain) = name.strip_suffix(&behind) {
                *name = plain.to_owned();
            }
        }
        self.told(variant)
    }

    /// Whether a model judges tests of this dialect. What is no test is told later.
    pub fn suits(&self, model: &Model) -> bool {
        let test = self.text.as_ref().ok().and_then(|text| litmus::parse(text, &self.file).ok());
        test.is_none_or(|test| model.judges(test.dialect))
    }

    /// Whether a model judges the program that a device runs for this test.
    pub fn suits_devices(&self, model: &Model) -> bool {
        self.suits(model) || model.judges(Dialect::Vulkan)
    }

    /// The test in the text.
    ///
    /// # Errors
    /// When there is no text, or it is no test.
    pub fn load(self) -> Result<Loaded, Rejected> {
        let file = &self.file;
        let rejected = |error: &str, line: u32, column: u32, failure: Failure| {
            let line = RejectedLine { file: file.clone(), error: error.to_owned(), line, column };
            Rejected { line, failure }
        };
        let text = self.text.clone().map_err(|Unreadable { what, line, column }| {
            let failure = Failure::input_message(format!("{file}:{line}:{column}: {what}"));
            rejected(&what, line, column, failure)
        })?;
        let test = litmus::parse(&text, file).map_err(|errors| {
            let messages = errors.messages();
            let all = errors.to_string();
            let (error, line, column) = messages
                .first()
                .map_or((all.as_str(), 1, 1), |first| (first.text.as_str(), first.line, first.column));
            rejected(error, line, column, Failure::input(errors.clone()))
        })?;
        Ok(Loaded { source: self, text, test })
    }
}
