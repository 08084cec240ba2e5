//! A progress bar for people who watch.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use campaign::run::Watch;
use indicatif::{ProgressBar, ProgressStyle};
use results::show::line as shown;
use results::write::number;

/// A progress bar, or nothing where nobody watches.
pub struct Bar {
    bar: ProgressBar,
    started: Instant,
    /// How long it takes, where that is bounded.
    time: Option<Duration>,
}

impl Bar {
    /// A bar over `tests` tests that take `time` together, where that is bounded.
    pub fn new(tests: usize, wanted: bool, time: Option<Duration>) -> Bar {
        let started = Instant::now();
        if !wanted || !std::io::stderr().is_terminal() {
            return Bar { bar: ProgressBar::hidden(), started, time };
        }
        let bar = ProgressBar::new(tests as u64);
        // The template is a constant; the default will do where it does not parse.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar { bar, started, time }
    }

    /// How long it still takes: what is left of the time, or as long as the tests that are left would take.
    fn left(&self) -> Option<String> {
        let elapsed = self.started.elapsed();
        let left = match self.time {
            Some(time) => time.saturating_sub(elapsed),
            None => {
                let (done, all) = (self.bar.position(), self.bar.length()?);
                let part = all.saturating_sub(done) as f64 / (done > 0).then_some(done)? as f64;
                elapsed.mul_f64(part)
            }
        };
        let seconds = left.as_secs();
        Some(format!("{}:{:02} left", seconds / 60, seconds % 60))
    }
}

impl Watch for Bar {
    fn shows(&self, device: &str, id: &str, instances: u64, seconds: f64) {
        let rate = if seconds > 0.0 {
            // Saturates.
            format!(" ({} a second)", number::count((instances as f64 / seconds) as u64))
        } else {
            String::new()
        };
        let left = self.left().map(|left| format!("{left}, ")).unwrap_or_default();
        self.bar.set_message(format!(
            "{left}{} on {}: {}{rate}",
            shown(id),
            shown(device),
            number::count(instances)
        ));
    }

    fn advances(&self) {
        self.bar.inc(1);
    }

    fn says(&self, text: &str) {
        // Above the bar.
        self.bar.suspend(|| crate::output::say(text));
    }

    fn ends(&self) {
        self.bar.finish_and_clear();
    }
}
