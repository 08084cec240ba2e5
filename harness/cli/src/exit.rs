//! How the program ends: the exit codes that scripts rely on, and the errors that lead to them.

pub use campaign::{Conclusion as Outcome, Failure};

/// The exit code.
pub fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Success => 0,
        // A forbidden outcome seen, an answer unlike the expected one, under `--strict` a test not exercised.
        Outcome::RuleBroken => 1,
        Outcome::Input => 2,
        // No device, a test that did not end, input or output.
        Outcome::Environment => 3,
        // `git bisect run` skips the version.
        Outcome::Untested => 125,
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
            code(all)
        };
        assert_eq!(together(&[]), 0);
        assert_eq!(together(&[Environment]), 3);
        assert_eq!(together(&[Environment, RuleBroken]), 1);
        assert_eq!(together(&[RuleBroken, Input, Environment]), 2);
    }
}
