//! The kinds of a run: litmus tests with outcome counts, tests of forward progress, and user shaders with
//! buffer contents.

use std::time::Duration;

use crate::shard::Shard;

pub mod litmus;
pub mod progress;
mod result_line;
pub mod shader;

/// The options of a run other than its tests and devices.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The model of `--model`.
    pub model: Option<String>,
    /// The stress of `--stress`.
    pub stress: Option<String>,
    /// The fault of the simulated GPU.
    pub fault: Option<String>,
    /// Instances of each test, or dispatches of each placement.
    pub instances: Option<u64>,
    /// Concurrent worker processes of one device.
    pub jobs: u32,
    /// Runs of each test, each in its own worker.
    pub repeats: u32,
    /// Repetitions of a failed test.
    pub retries: u32,
    /// Enables the validation layers.
    pub validate: bool,
    /// The shard of the tests that this run executes.
    pub shard: Option<Shard>,
    /// The suite; empty if tests were named instead.
    pub suite: String,
    /// Time after the end of the budget during which tests may still start.
    pub grace: Duration,
}

impl RunOptions {
    /// Returns the flags of a command that repeats a test.
    fn replay_flags(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("fault", self.fault.as_deref()),
            ("model", self.model.as_deref()),
            ("stress", self.stress.as_deref()),
        ]
    }
}

pub fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-_./:@,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns a command to copy. It is empty if a word has control characters, which a terminal does not show.
pub fn copyable_command(command: String) -> String {
    if command.contains(char::is_control) { String::new() } else { command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let cases = [
            ("mp/MP+rel-acq.wg@v", "mp/MP+rel-acq.wg@v"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
        ];
        for (word, expected) in cases {
            assert_eq!(quote_for_shell(word), expected);
        }
        assert_eq!(copyable_command(quote_for_shell("$x y")), "'$x y'");
        assert_eq!(copyable_command(quote_for_shell("a\nb")), "");
    }
}
