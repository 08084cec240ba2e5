//! The effect of an answer on the exit code of a command.

/// The outcome of a command, in increasing order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandOutcome {
    /// No error, violation or unmet expectation.
    #[default]
    Success,
    Environment,
    /// A rule was broken.
    RuleBroken,
    /// The input or the command line is wrong.
    Input,
    /// For `git bisect`: the test of this version has no conclusion.
    Untested,
}

impl CommandOutcome {
    /// Stores the more severe of both outcomes.
    pub fn escalate_to(&mut self, other: CommandOutcome) {
        *self = (*self).max(other);
    }
}
