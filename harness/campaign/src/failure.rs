//! Why something cannot begin or go on, with the side that it is on.

use std::path::Path;

use miette::Diagnostic;

/// An error that ends a command, with the side that it is on.
#[derive(Debug)]
pub enum Failure {
    /// The input or the command line is wrong.
    Input(miette::Report),
    /// The environment failed.
    Environment(miette::Report),
}

/// Something that is not built yet.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{what} is not available")]
#[diagnostic(help("this version does not have it yet"))]
pub struct NotAvailable {
    what: String,
}

/// A plain message.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{0}")]
struct Message(String);

impl Message {
    /// A message that quotes what others wrote, and so must not reach a terminal as it is.
    fn new(text: impl Into<String>) -> Message {
        Message(results::show::block(&text.into()).into_owned())
    }
}

impl Failure {
    /// What is wrong with a results folder.
    pub fn folder(error: results::folder::FolderError) -> Failure {
        if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
    }

    /// The refusal of something that is not built yet.
    pub fn not_available(what: impl Into<String>) -> Failure {
        Failure::input(NotAvailable { what: what.into() })
    }

    /// Wrong input, told by an error with its place.
    pub fn input(error: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure::Input(miette::Report::new(error))
    }

    /// Wrong input, told by an error and those under it.
    pub fn input_error(error: impl std::error::Error) -> Failure {
        Failure::Input(miette::Report::new(Message::new(chain(&error))))
    }

    /// A failure of the environment, told by an error and those under it.
    pub fn environment_error(error: impl std::error::Error) -> Failure {
        Failure::Environment(miette::Report::new(Message::new(chain(&error))))
    }

    /// Wrong input in words.
    pub fn input_message(text: impl Into<String>) -> Failure {
        Failure::Input(miette::Report::new(Message::new(text)))
    }

    /// A failure of the environment in words.
    pub fn environment_message(text: impl Into<String>) -> Failure {
        Failure::Environment(miette::Report::new(Message::new(text)))
    }

    /// What keeps a file or a folder from being read or written.
    pub fn of_file(path: &Path, error: impl std::fmt::Display) -> Failure {
        Failure::environment_message(format!("{}: {error}", path.display()))
    }

    /// The error for people.
    pub fn report(&self) -> &miette::Report {
        match self {
            Failure::Input(report) | Failure::Environment(report) => report,
        }
    }
}

/// An error and those under it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(inner) = next {
        let inner_text = inner.to_string();
        // Many errors repeat what lies under them.
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        next = inner.source();
    }
    text
}

/// What was wrong, besides nothing: what weighs more comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conclusion {
    /// Nothing.
    #[default]
    Success,
    /// The environment failed.
    Environment,
    /// A rule was broken.
    RuleBroken,
    /// The input or the command line is wrong.
    Input,
    /// For a bisection: nothing can be said of this version, whatever the reason.
    Untested,
}

impl Conclusion {
    /// Adds what else was wrong.
    pub fn note(&mut self, other: Conclusion) {
        *self = (*self).max(other);
    }
}

impl From<&Failure> for Conclusion {
    fn from(failure: &Failure) -> Conclusion {
        match failure {
            Failure::Input(_) => Conclusion::Input,
            Failure::Environment(_) => Conclusion::Environment,
        }
    }
}
