//! Errors that end a run before its budget is used.

use std::time::Duration;

use litmus::Observation;
use plan::DeviceError;

use crate::stress::StressError;

/// A failed run with its observations up to the failure, which are never discarded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct RunError {
    #[source]
    pub cause: Cause,
    /// The observations before the failure.
    pub observation: Box<Observation>,
}

/// The cause of a failed run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The device or its driver returned an error.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A submission did not end. Its memory stays in use, so that neither it nor the device may be destroyed
    /// in this process: that would block forever.
    #[error("a submission did not end within {} ms", after.as_millis())]
    TimedOut { after: Duration },
    /// The device signals completion, but executes nothing.
    #[error("the device executes nothing")]
    NullDevice,
    #[error("the device has no memory for {0}")]
    TooSmall(String),
    /// Kernel and test contradict each other.
    #[error("the kernel does not fit its test: {0}")]
    Kernel(String),
    /// Device and host counted different outcomes of a dispatch. Neither count is used.
    #[error("dispatch {dispatch}: the device counts {difference}")]
    Disagreement {
        /// Number of the dispatch, from 1.
        dispatch: u64,
        difference: String,
    },
    /// The device does not support the stress.
    #[error(transparent)]
    Stress(#[from] StressError),
}
