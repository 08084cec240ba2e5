//! Histograms of consecutive intervals of dispatches, used to detect drift during a run.

use litmus::Histogram;

use crate::count::Counter;

/// The maximum number of intervals. When it is reached, pairs are merged, so that a long run has 32 to 64.
const MAX_INTERVALS: usize = 64;

/// The cumulative counts at regular intervals of dispatches.
#[derive(Clone, Debug)]
pub(crate) struct IntervalCounts {
    interval_dispatches: u64,
    /// Counts since the start of the run, at the end of each interval.
    cumulative: Vec<Histogram>,
}

impl IntervalCounts {
    pub fn new() -> IntervalCounts {
        IntervalCounts { interval_dispatches: 1, cumulative: Vec::new() }
    }

    /// Records the counts after `counted` counted dispatches, if an interval ends there.
    pub fn record(&mut self, counted: u64, counter: &Counter) {
        if counted == 0 || !counted.is_multiple_of(self.interval_dispatches) {
            return;
        }
        self.cumulative.push(counter.histogram());
        if self.cumulative.len() >= MAX_INTERVALS {
            self.interval_dispatches *= 2;
            // The counts are cumulative, so dropping the first of two merges their intervals.
            let mut second = false;
            self.cumulative.retain(|_| {
                second = !second;
                !second
            });
        }
    }

    /// Returns the counts of each interval.
    pub fn histograms(&self) -> Vec<Histogram> {
        subtract_predecessors(&self.cumulative)
    }
}

/// Returns the counts between consecutive cumulative histograms; the first one counts from zero.
pub(crate) fn subtract_predecessors(cumulative: &[Histogram]) -> Vec<Histogram> {
    let mut before = &Histogram::default();
    cumulative
        .iter()
        .map(|total| {
            let mut own = Histogram::default();
            for (outcome, count) in &total.counts {
                let earlier = before.counts.get(outcome).copied().unwrap_or(0);
                if *count > earlier {
                    own.add_count(outcome.clone(), count - earlier);
                }
            }
            before = total;
            own
        })
        .collect()
}
