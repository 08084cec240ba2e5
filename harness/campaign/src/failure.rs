//! Errors that end a command, by cause: input or environment.

use std::path::Path;

use miette::Diagnostic;
pub use verdicts::CommandOutcome;

/// An error that ends a command, by cause.
#[derive(Debug)]
pub enum Failure {
    /// The input or the command line is wrong.
    Input(miette::Report),
    Environment(miette::Report),
}

/// A feature that this version lacks.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{what} is not available")]
#[diagnostic(help("this version does not implement it"))]
pub struct NotAvailable {
    what: String,
}

#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{0}")]
struct FailureMessage(String);

impl FailureMessage {
    /// Creates a message. Quoted input is escaped, so that it cannot control a terminal.
    fn new(text: impl Into<String>) -> FailureMessage {
        FailureMessage(results::escape::escape_block(&text.into()).into_owned())
    }
}

impl Failure {
    pub fn folder_error(error: results::folder::FolderError) -> Failure {
        if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
    }

    /// Refuses a feature that this version lacks.
    pub fn not_available(what: impl Into<String>) -> Failure {
        Failure::input(NotAvailable { what: what.into() })
    }

    /// Wrong input, with a source position.
    pub fn input(error: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure::Input(miette::Report::new(error))
    }

    /// Wrong input, described by an error and its causes.
    pub fn input_error(error: impl std::error::Error) -> Failure {
        Failure::Input(miette::Report::new(FailureMessage::new(join_causes(&error))))
    }

    /// A failure of the environment, described by an error and its causes.
    pub fn environment_error(error: impl std::error::Error) -> Failure {
        Failure::Environment(miette::Report::new(FailureMessage::new(join_causes(&error))))
    }

    /// Wrong input, described by a message.
    pub fn input_message(text: impl Into<String>) -> Failure {
        Failure::Input(miette::Report::new(FailureMessage::new(text)))
    }

    /// A failure of the environment, described by a message.
    pub fn environment_message(text: impl Into<String>) -> Failure {
        Failure::Environment(miette::Report::new(FailureMessage::new(text)))
    }

    /// A thread or a process cannot be started.
    pub fn not_started(error: &std::io::Error) -> Failure {
        Failure::environment_message(format!(
            "no thread or process can be started: {error}; `ulimit -u` and `ulimit -v` limit them"
        ))
    }

    /// A failure to read or write a file or a folder.
    pub fn file_error(path: &Path, error: impl std::fmt::Display) -> Failure {
        Failure::environment_message(format!("{}: {error}", path.display()))
    }

    /// Returns the error for display.
    pub fn report(&self) -> &miette::Report {
        match self {
            Failure::Input(report) | Failure::Environment(report) => report,
        }
    }
}

fn join_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(inner) = next {
        let inner_text = inner.to_string();
        // Many errors repeat the text of their cause.
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        next = inner.source();
    }
    text
}

impl From<&Failure> for CommandOutcome {
    fn from(failure: &Failure) -> CommandOutcome {
        match failure {
            Failure::Input(_) => CommandOutcome::Input,
            Failure::Environment(_) => CommandOutcome::Environment,
        }
    }
}
