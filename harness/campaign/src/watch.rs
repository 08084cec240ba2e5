//! The observer of a run.

use results::wire::RunLine;

/// Observer of a run, such as a progress bar. All methods are called on the judging thread.
pub trait Watch {
    /// A test has run this many instances in this many seconds of dispatches.
    fn shows(&self, device: &str, id: &str, instances: u64, seconds: f64);
    /// A test ended with this verdict.
    fn advances(&self, line: &RunLine);
    /// A message was reported.
    fn says(&self, text: &str);
    /// All tests ended.
    fn ends(&self);
}
