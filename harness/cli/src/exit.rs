//! How the program ends: the exit codes that scripts rely on, and the errors that lead to them.

use std::process::ExitCode;

pub use campaign::Failure;

/// Nothing was wrong.
pub const SUCCESS: u8 = 0;
/// A rule was broken: a forbidden outcome seen, an answer unlike the expected one, under `--strict` a test not exercised.
pub const RULE_BROKEN: u8 = 1;
/// The input or the command line is wrong.
pub const INPUT: u8 = 2;
/// The environment failed: no device, a test that did not end, input or output.
pub const ENVIRONMENT: u8 = 3;
/// `git bisect run` skips the version.
pub const UNTESTED: u8 = 125;

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
    /// For a bisection: nothing can be said of this version, whatever the reason.
    Untested,
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
            Outcome::Untested => UNTESTED,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Outcome {
        match failure {
            Failure::Input(_) => Outcome::Input,
            Failure::Environment(_) => Outcome::Environment,
        }
    }
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
