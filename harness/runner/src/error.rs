//! Why a run ended before its budget was used.

use std::time::Duration;

use litmus::Observation;
use plan::DeviceError;

use crate::stress::StressError;

/// A run that failed, with what had been seen by then: an outcome once seen is never lost.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct RunError {
    /// Why it ended.
    #[source]
    pub cause: Cause,
    /// What was seen before.
    pub seen: Box<Observation>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The device or its driver said so.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A submission did not end. Its memory is in use for good: neither it nor the device may be destroyed in this
    /// process, since that would wait without an end.
    #[error("a submission did not end within {} ms", after.as_millis())]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The device answers, but executes nothing.
    #[error("the device executes nothing")]
    NullDevice,
    /// The device is too small for the smallest dispatch.
    #[error("the device has no room for {0}")]
    TooSmall(String),
    /// Kernel and test contradict one another.
    #[error("the kernel does not fit its test: {0}")]
    Kernel(String),
    /// Device and host have counted the outcomes of a dispatch, and do not agree. What the host counted is kept.
    #[error("dispatch {dispatch}: the device counts {difference}")]
    Disagreement {
        /// Number of the dispatch, from 1.
        dispatch: u64,
        /// What both say.
        difference: String,
    },
    /// The stress cannot be had on this device.
    #[error(transparent)]
    Stress(#[from] StressError),
}
