//! Exit codes and the errors that cause them.

pub use campaign::{CommandOutcome as Outcome, Failure};

/// Each exit code with its meaning, as the reference lists them.
pub const EXIT_CODES: [(u8, &str); 5] = [
    (
        0,
        "success: no rule was broken. Skipped tests, racy litmus tests, and tests that were not exercised, are not failures",
    ),
    (
        1,
        "a rule was broken: a forbidden outcome was observed, a shader has a finding that is not one of `lint`, or an answer \
         differs from the expected one; with `--strict`, a test was not exercised",
    ),
    (2, "the command line or an input is wrong; a shader was refused"),
    (
        3,
        "no answer: no device, a crash or hang, a test without a verdict, a limit was reached, or a file could not be written",
    ),
    (125, "with `--bisect`: this commit cannot be tested"),
];

/// Returns the exit code of an outcome.
pub fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Success => 0,
        // A forbidden outcome was observed, an answer differs from the expected one, or, with `--strict`, a
        // test was not exercised.
        Outcome::RuleBroken => 1,
        Outcome::Input => 2,
        // No device, a test that did not end, or an I/O error.
        Outcome::Environment => 3,
        // `git bisect run` skips this commit.
        Outcome::Untested => 125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_ordered_by_severity() {
        use Outcome::{Environment, Input, RuleBroken, Success};
        let combine = |outcomes: &[Outcome]| {
            let mut all = Success;
            outcomes.iter().for_each(|outcome| all.escalate_to(*outcome));
            exit_code(all)
        };
        assert_eq!(combine(&[]), 0);
        assert_eq!(combine(&[Environment]), 3);
        assert_eq!(combine(&[Environment, RuleBroken]), 1);
        assert_eq!(combine(&[RuleBroken, Input, Environment]), 2);
    }
}
