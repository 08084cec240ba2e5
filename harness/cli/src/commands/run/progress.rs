//! The progress bar of a run.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use campaign::run::RunObserver;
use indicatif::{ProgressBar, ProgressStyle};
use results::escape::escape_line as shown;
use results::state;
use results::wire::{RunLine, VerdictWord};
use results::write::number;

/// A progress bar; hidden if standard error is not a terminal.
pub struct RunProgressBar {
    bar: ProgressBar,
    started: Instant,
    /// Total time, if bounded.
    time: Option<Duration>,
    /// Number of verdicts so far: violates, inconclusive, conforms.
    counts: [AtomicUsize; 3],
    /// Flag to set at the first violation, if that ends the run.
    stop: Option<Arc<AtomicBool>>,
    /// Whether the bar is visible.
    is_visible: bool,
}

impl RunProgressBar {
    /// Creates a bar over `tests` tests with a total time, if bounded. The first violation sets `stop`.
    pub fn new(
        tests: usize,
        is_enabled: bool,
        time: Option<Duration>,
        stop: Option<Arc<AtomicBool>>,
    ) -> RunProgressBar {
        let (started, counts) = (Instant::now(), <[AtomicUsize; 3]>::default());
        if !is_enabled || !std::io::stderr().is_terminal() {
            return RunProgressBar {
                bar: ProgressBar::hidden(),
                started,
                time,
                counts,
                stop,
                is_visible: false,
            };
        }
        let bar = ProgressBar::new(tests as u64);
        // The template is constant; if it did not parse, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        RunProgressBar { bar, started, time, counts, stop, is_visible: true }
    }

    /// Formats the nonzero numbers of verdicts.
    fn format_counts(&self) -> String {
        let words = ["violate", "inconclusive", "conform"];
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        words
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{} {word}, ", number::format_count(count as u64)))
            .collect()
    }

    /// Describes a violation by its most frequent forbidden outcome.
    fn describe_violation(line: &RunLine) -> String {
        let (id, device) = (shown(&line.id), shown(&line.device));
        let forbidden = line.outcomes.iter().filter(|outcome| !outcome.allowed && outcome.count > 0);
        let most_frequent = forbidden.max_by_key(|outcome| outcome.count);
        let what = match most_frequent {
            Some(outcome) => format!(
                "{} of {} instances {}",
                number::format_count(outcome.count),
                number::format_count(line.instances),
                state::format_state(&outcome.state)
            ),
            None => line.detail.clone().unwrap_or_default(),
        };
        format!("violates: {id} on {device}: {}", shown(&what))
    }

    /// Estimates the remaining time: from the total time, or from the average per test.
    fn remaining_time(&self) -> Option<String> {
        let elapsed = self.started.elapsed();
        let remaining = match self.time {
            Some(time) => time.saturating_sub(elapsed),
            None => {
                let (done, all) = (self.bar.position(), self.bar.length()?);
                let part = all.saturating_sub(done) as f64 / (done > 0).then_some(done)? as f64;
                elapsed.mul_f64(part)
            }
        };
        let seconds = remaining.as_secs();
        Some(format!("{}:{:02} left", seconds / 60, seconds % 60))
    }
}

impl RunObserver for RunProgressBar {
    fn on_progress(&self, device: &str, id: &str, instances: u64, seconds: f64) {
        let rate = if seconds > 0.0 {
            // The cast saturates.
            format!(" ({} a second)", number::format_count((instances as f64 / seconds) as u64))
        } else {
            String::new()
        };
        let left = self.remaining_time().map(|left| format!("{left}, ")).unwrap_or_default();
        self.bar.set_message(format!(
            "{}{left}{} on {}: {}{rate}",
            self.format_counts(),
            shown(id),
            shown(device),
            number::format_count(instances)
        ));
    }

    fn on_verdict(&self, line: &RunLine) {
        let index = match line.verdict {
            VerdictWord::Violates => Some(0),
            VerdictWord::Inconclusive => Some(1),
            VerdictWord::Conforms => Some(2),
            VerdictWord::Undefined | VerdictWord::Skipped => None,
        };
        if let Some(count) = index.and_then(|place| self.counts.get::<usize>(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if line.verdict == VerdictWord::Violates {
            if self.is_visible {
                self.on_message(&RunProgressBar::describe_violation(line));
            }
            if let Some(stop) = &self.stop {
                stop.store(true, Ordering::Relaxed);
            }
        }
        self.bar.inc(1);
    }

    fn on_message(&self, text: &str) {
        // Printed above the bar.
        self.bar.suspend(|| crate::output::print_message(text));
    }

    fn on_finish(&self) {
        self.bar.finish_and_clear();
    }
}
