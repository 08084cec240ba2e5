//! Messages between the parent and a worker process: one JSON text per line, in both directions.
//!
//! A worker's line starts with the record separator of RFC 7464, which separates it from output of a driver.
//! Payload types may change freely; a change of these types needs a new [`VERSION`].

use litmus::{Observation, Outcome};
use plan::{Capabilities, DeviceError, Identity};
use serde::{Deserialize, Serialize};

use crate::error::Cause;
use crate::exercise::ContentionTimeShares;
use crate::mechanisms::SpreadPart;
use crate::stress::Stress;

/// The version of the messages. Both sides are the same binary, unless it was replaced while running.
pub const VERSION: u32 = 1;

/// The first byte of a worker's line (RFC 7464).
pub const RECORD_SEPARATOR: u8 = 0x1e;

/// A message from parent to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<J> {
    /// [`VERSION`].
    pub version: u32,
    pub job: u64,
    pub payload: J,
}

/// A message from worker to parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkerMessage<P, R> {
    /// The progress of the job, which also shows that the worker is alive.
    Progress {
        /// [`VERSION`].
        version: u32,
        job: u64,
        payload: P,
    },
    /// The job ended.
    Answer {
        /// [`VERSION`].
        version: u32,
        job: u64,
        payload: R,
    },
}

/// A job: one test to run on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The test id, for messages.
    pub id: String,
    pub text: String,
    /// The words of its [`RunVariant`](crate::RunVariant); empty for the default.
    pub variant: String,
    /// The planned kernels' [hash](crate::Runnable::hash). A worker that compiles other kernels runs nothing.
    /// Empty if none are planned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    pub device: String,
    /// The stress; the preset of the device if absent.
    pub stress: Option<Stress>,
    /// The number of instances. Together with `seconds`, whichever is reached first ends the run.
    pub instances: Option<u64>,
    /// Time for dispatches in seconds.
    pub seconds: Option<f64>,
    /// The seed of the drawn parameters.
    pub seed: u64,
    /// Words that an instance may show.
    pub plausible: Vec<u32>,
    /// Uses a part of the budget for a twin, if threads meet in a control barrier or the outcomes did not
    /// show an overlap.
    pub twin: bool,
    /// Outcomes that a serial order of whole threads produces: values in the order of the test's observables.
    pub serial: Vec<Outcome>,
    /// The number of instances with other outcomes above which no twin is needed.
    pub enough: u64,
    /// The share of `seconds` that the run takes under CPU contention.
    #[serde(default)]
    pub parts: ContentionTimeShares,
    /// Weak outcomes that the device has shown before, like `serial`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Outcome>,
    /// Weak outcomes of store buffering, expected if the worker's calibration shows it; like `serial`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibrated: Vec<Outcome>,
    /// Time limit of a submission in seconds.
    pub patience: f64,
}

/// The observations of a worker so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Of the test.
    pub observation: Observation,
    pub twin: Option<Observation>,
    /// As [`JobResult::spread`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadPart>,
}

/// The result of a job, with all observations even if it failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobResult {
    /// The device, if it could be opened.
    pub device: Option<Identity>,
    /// Its features and limits.
    pub capabilities: Option<Capabilities>,
    /// The stress that was used.
    pub stress: Option<Stress>,
    /// The memory type of the locations, by the names of its properties; that of separate locations follows
    /// after `and`.
    pub memory: Option<String>,
    /// Why the host counted all outcomes instead of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by_host: Option<String>,
    /// The second part of the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadPart>,
    /// The variant's stage runs its invocations sequentially, so that partners did not wait for each
    /// other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial_stage: bool,
    /// Peak host memory of the worker in bytes, if the platform reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    pub observation: Observation,
    /// Why the run, or the one of its twin, ended early.
    pub failure: Option<IncompleteReason>,
    pub twin: Option<Observation>,
    /// Messages of the validation layers.
    pub validation: Vec<String>,
}

/// Why an answer is incomplete, with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", content = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum IncompleteReason {
    /// The text is not a valid test.
    #[error("{0}")]
    Test(String),
    /// The test cannot be placed on any device, by this rule.
    #[error("{0}")]
    NotPlaceable(String),
    /// The device lacks this feature, or is too small.
    #[error("{0}")]
    Lacks(String),
    /// The device or the driver does not exist.
    #[error("{0}")]
    NoDevice(String),
    /// The device does not support the stress.
    #[error("{0}")]
    Stress(String),
    #[error("the device executes nothing")]
    NullDevice,
    /// The driver lost the device.
    #[error("{0}")]
    DeviceLost(String),
    /// A submission did not end.
    #[error("{0}")]
    TimedOut(String),
    /// Another error of the driver.
    #[error("{0}")]
    Driver(String),
    /// Device and host counted the outcomes of a dispatch differently.
    #[error("{0}")]
    Disagreement(String),
    /// An inconsistency inside this program.
    #[error("{0}")]
    Internal(String),
}

impl IncompleteReason {
    /// Returns true if device and driver must not run another job after this failure.
    pub fn invalidates_worker(&self) -> bool {
        matches!(
            self,
            IncompleteReason::DeviceLost(_) | IncompleteReason::TimedOut(_) | IncompleteReason::Driver(_)
        )
    }

    /// Adds to the message that the failure is one of a test's twin.
    pub(crate) fn attributed_to_twin(mut self) -> IncompleteReason {
        match &mut self {
            IncompleteReason::Test(message)
            | IncompleteReason::NoDevice(message)
            | IncompleteReason::Stress(message)
            | IncompleteReason::DeviceLost(message)
            | IncompleteReason::TimedOut(message)
            | IncompleteReason::Driver(message)
            | IncompleteReason::Disagreement(message)
            | IncompleteReason::Internal(message) => message.insert_str(0, "with its twin: "),
            IncompleteReason::NotPlaceable(_) | IncompleteReason::Lacks(_) | IncompleteReason::NullDevice => {
            }
        }
        self
    }
}

impl From<Cause> for IncompleteReason {
    fn from(cause: Cause) -> IncompleteReason {
        let message = cause.to_string();
        match cause {
            Cause::Device(error) => error.into(),
            Cause::TimedOut { .. } => IncompleteReason::TimedOut(message),
            Cause::NullDevice => IncompleteReason::NullDevice,
            Cause::TooSmall(what) => IncompleteReason::Lacks(format!("room for {what}")),
            Cause::Kernel(_) => IncompleteReason::Internal(message),
            Cause::Disagreement { .. } => IncompleteReason::Disagreement(message),
            Cause::Stress(_) => IncompleteReason::Stress(message),
        }
    }
}

impl From<DeviceError> for IncompleteReason {
    fn from(error: DeviceError) -> IncompleteReason {
        let message = error.to_string();
        match error {
            DeviceError::NoLoader(_) | DeviceError::NoDriver(_) | DeviceError::NoSuchDevice(_) => {
                IncompleteReason::NoDevice(message)
            }
            DeviceError::Unsupported(what) => IncompleteReason::Lacks(what),
            DeviceError::DeviceLost(_) => IncompleteReason::DeviceLost(message),
            DeviceError::StepBudget => IncompleteReason::TimedOut(message),
            DeviceError::OutOfMemory(_) | DeviceError::Driver { .. } | DeviceError::NotExecuted(_) => {
                IncompleteReason::Driver(message)
            }
            DeviceError::Busy | DeviceError::InvalidPlan(_) => IncompleteReason::Internal(message),
        }
    }
}

impl From<shaders::CompileError> for IncompleteReason {
    fn from(error: shaders::CompileError) -> IncompleteReason {
        match error {
            shaders::CompileError::NotPlaceable { rule } => IncompleteReason::NotPlaceable(rule),
            large @ shaders::CompileError::WorkgroupTooLarge { .. } => {
                IncompleteReason::Lacks(large.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use litmus::{Batches, Histogram, Value};

    use super::*;

    #[test]
    fn observations_survive_the_wire() {
        let mut observation = Observation {
            unexpected: BTreeMap::from([(vec![1, u32::MAX], 3), (Vec::new(), 1)]),
            unresolved: 1,
            unrecorded_outcomes: 8,
            not_executed: 2,
            partially_written: 1,
            repeated: 6,
            outside_grid: 9,
            misread_dispatches: 10,
            dispatches: 4,
            discarded_dispatches: 5,
            seconds: 0.25,
            batches: Some(Batches { total: 7, by_outcome: BTreeMap::from([(Outcome(vec![Value(3)]), 2)]) }),
            ..Observation::default()
        };
        observation.histogram.add_count(Outcome(vec![Value(0), Value(u64::MAX)]), 9);
        observation.histogram.add_count(Outcome(vec![Value(1), Value(0)]), 8);
        observation.stretches = vec![observation.histogram.clone(), Histogram::default()];
        observation.parts = vec![Histogram::default(), observation.histogram.clone()];
        let text = serde_json::to_string(&observation).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), observation);
    }

    #[test]
    fn failures_have_a_kind() {
        let text =
            serde_json::to_string(&IncompleteReason::from(DeviceError::DeviceLost("vkQueueSubmit"))).unwrap();
        assert_eq!(text, r#"{"kind":"device_lost","message":"the device was lost during vkQueueSubmit"}"#);
    }
}
