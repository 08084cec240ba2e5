//! A progress bar for people who watch.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use results::write::number;

/// A progress bar, or nothing where nobody watches.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `tests` tests.
    pub fn new(tests: usize, wanted: bool) -> Progress {
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new(tests as u64);
        // The template is a constant; the default will do where it does not parse.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress { bar }
    }

    /// A test goes on.
    pub fn shows(&self, device: &str, id: &str, instances: u64) {
        self.bar.set_message(format!("{id} on {device}: {}", number::count(instances)));
    }

    /// A test has ended.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Prints a message above the bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| crate::output::say(text));
    }

    /// All tests have ended.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
