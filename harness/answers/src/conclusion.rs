//! The effect of an answer on the exit code of a command.

/// The outcome of a command, in increasing order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandOutcome {
    /// Nothing was wrong.
    #[default]
    Success,
    /// The environment failed.
    Environment,
    /// A rule was broken.
    RuleBroken,
    /// The input or the command line is wrong.
    Input,
    /// For a bisection: this version cannot be judged.
    Untested,
}

impl CommandOutcome {
    /// Keeps the more severe conclusion.
    pub fn note(&mut self, other: CommandOutcome) {
        *self = (*self).max(other);
    }
}
