//! Decides when a test is exercised, from a threshold and the outcomes that do not count.

use litmus::{Histogram, Outcome};
use serde::{Deserialize, Serialize};

/// A test is exercised if enough of its instances show an outcome that no serial order of whole threads
/// produces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExerciseCriterion {
    /// The serial outcomes.
    pub serial_outcomes: Vec<Outcome>,
    /// The required number of other outcomes.
    pub required_count: u64,
    /// The share of its time that a run takes under contention.
    pub time_shares: ContentionTimeShares,
}

/// The share of its time that a run takes under CPU contention, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentionTimeShares {
    /// The share of an exercised test, which leaves time for later tests.
    pub exercised: u32,
    /// The share until then.
    pub seeking: u32,
}

impl Default for ContentionTimeShares {
    fn default() -> ContentionTimeShares {
        ContentionTimeShares { exercised: 100, seeking: 100 }
    }
}

impl ExerciseCriterion {
    /// Returns true if the histogram has enough interleaved outcomes.
    pub fn is_met_by(&self, seen: &Histogram) -> bool {
        let interleaved = seen.counts.iter().filter(|(outcome, _)| !self.serial_outcomes.contains(outcome));
        interleaved.map(|(_, count)| count).sum::<u64>() >= self.required_count
    }
}
