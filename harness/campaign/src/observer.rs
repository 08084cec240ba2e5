//! The observer of a run.

use results::wire::RunLine;

/// Observer of a run, such as a progress bar. All methods are called on the judging thread.
pub trait RunObserver {
    /// Called with the instances and the seconds of dispatches of a running test.
    fn on_progress(&self, device: &str, id: &str, instances: u64, seconds: f64);
    /// Called when a test ended with a verdict.
    fn on_verdict(&self, line: &RunLine);
    /// Called with a message.
    fn on_message(&self, text: &str);
    /// Called when all tests ended.
    fn on_finish(&self);
}
