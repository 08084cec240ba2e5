//! When a test is exercised, as plain data: whoever judges says which outcomes do not count, and how many others do.

use litmus::{Histogram, Outcome};
use serde::{Deserialize, Serialize};

/// When a test is exercised: so many of its instances have shown what no serial order of whole threads produces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exercise {
    /// The outcomes that a serial order produces: values in the order of the test's observables.
    pub serial: Vec<Vec<u64>>,
    /// How many others are enough.
    pub enough: u64,
    /// How much of its time a run takes in company.
    pub parts: Parts,
}

/// How much of its time a run takes where others have the processors for much of it, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// Once its test is exercised: what is left is for tests that come later.
    pub exercised: u32,
    /// Until then.
    pub seeking: u32,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { exercised: 100, seeking: 100 }
    }
}

impl Exercise {
    /// Whether what was seen is enough.
    pub fn is_seen(&self, seen: &Histogram) -> bool {
        let is_serial = |outcome: &Outcome| {
            let same = |values: &Vec<u64>| outcome.0.iter().map(|value| value.0).eq(values.iter().copied());
            self.serial.iter().any(same)
        };
        let interleaved = seen.counts.iter().filter(|(outcome, _)| !is_serial(outcome));
        interleaved.map(|(_, count)| count).sum::<u64>() >= self.enough
    }
}
