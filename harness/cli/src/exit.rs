//! How the program ends: the exit codes that scripts rely on, and the errors that lead to them.

use std::process::ExitCode;

use miette::Diagnostic;

/// Nothing was wrong.
pub const SUCCESS: u8 = 0;
/// A rule was broken: a forbidden outcome seen, an answer unlike the expected one, under `--strict` a test not exercised.
pub const RULE_BROKEN: u8 = 1;
/// The input or the command line is wrong.
pub const INPUT: u8 = 2;
/// The environment failed: no device, a test that did not end, input or output.
pub const ENVIRONMENT: u8 = 3;

/// What was wrong, besides nothing: what weighs more comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Nothing.
    #[default]
    Success,
    /// The environment failed.
    Environment,
    /// A rule was broken.
    RuleBroken,
    /// The input or the command line is wrong.
    Input,
}

impl Outcome {
    /// Adds what else was wrong.
    pub fn note(&mut self, other: Outcome) {
        *self = (*self).max(other);
    }

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Success => SUCCESS,
            Outcome::RuleBroken => RULE_BROKEN,
            Outcome::Input => INPUT,
            Outcome::Environment => ENVIRONMENT,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

/// An error that ends a command, with the side that it is on.
#[derive(Debug)]
pub enum Failure {
    /// The input or the command line is wrong.
    Input(miette::Report),
    /// The environment failed.
    Environment(miette::Report),
}

/// Something of the command line that is not built yet.
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

    /// The error for people.
    pub fn report(&self) -> &miette::Report {
        match self {
            Failure::Input(report) | Failure::Environment(report) => report,
        }
    }

    /// What it makes of the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            Failure::Input(_) => Outcome::Input,
            Failure::Environment(_) => Outcome::Environment,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_input_weighs_most_and_the_environment_least() {
        use Outcome::{Environment, Input, RuleBroken, Success};
        let together = |outcomes: &[Outcome]| {
            let mut all = Success;
            outcomes.iter().for_each(|outcome| all.note(*outcome));
            all.code()
        };
        assert_eq!(together(&[]), 0);
        assert_eq!(together(&[Environment]), 3);
        assert_eq!(together(&[Environment, RuleBroken]), 1);
        assert_eq!(together(&[RuleBroken, Input, Environment]), 2);
    }
}
