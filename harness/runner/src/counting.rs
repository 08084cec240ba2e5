//! The place where outcomes are counted.

use serde::{Deserialize, Serialize};

/// Where outcomes are counted: host, device, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CountingPlace {
    /// The host reads the memory of every dispatch. Cheapest if host and device share a processor.
    #[default]
    Host,
    /// The device counts and resets its memory, and the host reads the counters. The host also reads the
    /// memory of dispatches with unexpected results, of the first dispatch and of random ones, to compare.
    Device,
    /// Both count every dispatch, and the results are compared.
    Both,
}
