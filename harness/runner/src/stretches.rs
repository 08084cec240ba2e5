//! The course of a run: histograms of consecutive stretches of dispatches, used to detect drift.

use litmus::Histogram;

use crate::count::Counter;

/// The maximum number of stretches. When it is reached, pairs are merged, so that a long run has 32 to 64.
const MOST: usize = 64;

/// The cumulative counts at regular intervals of dispatches.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    /// Dispatches of a stretch.
    each: u64,
    /// Counts since the start of the run, at the end of each stretch.
    marks: Vec<Histogram>,
}

impl Stretches {
    /// Creates an empty course.
    pub fn new() -> Stretches {
        Stretches { each: 1, marks: Vec::new() }
    }

    /// Records the counts after `kept` counted dispatches, if a stretch ends there.
    pub fn note(&mut self, kept: u64, counter: &Counter) {
        if kept == 0 || !kept.is_multiple_of(self.each) {
            return;
        }
        self.marks.push(counter.histogram());
        if self.marks.len() >= MOST {
            self.each *= 2;
            // The marks are cumulative, so dropping the first of two merges their stretches.
            let mut second = false;
            self.marks.retain(|_| {
                second = !second;
                !second
            });
        }
    }

    /// Returns the counts of each stretch.
    pub fn histograms(&self) -> Vec<Histogram> {
        let mut before = &Histogram::default();
        self.marks
            .iter()
            .map(|mark| {
                let mut own = Histogram::default();
                for (outcome, count) in &mark.counts {
                    let earlier = before.counts.get(outcome).copied().unwrap_or(0);
                    if *count > earlier {
                        own.add_count(outcome.clone(), count - earlier);
                    }
                }
                before = mark;
                own
            })
            .collect()
    }
}
