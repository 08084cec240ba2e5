//! What parent and worker process say to each other: one JSON text a line, in both directions.
//!
//! A line of a worker begins with the record separator of RFC 7464, so that whatever a driver prints beside it is told
//! apart. Inner types may change freely; these may not without a step of [`VERSION`].

use std::collections::BTreeMap;

use litmus::{Batches, Histogram, Observation, Outcome, Value};
use plan::{Capabilities, DeviceError, Identity};
use serde::{Deserialize, Serialize};

use crate::error::Cause;
use crate::exercise::Parts;
use crate::stress::Stress;

/// Version of everything here. Both sides are the same binary, unless it was replaced while it ran.
pub const VERSION: u32 = 1;

/// The first byte of a worker's line (RFC 7464).
pub const RECORD_SEPARATOR: u8 = 0x1e;

/// Parent to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<J> {
    /// [`VERSION`].
    pub version: u32,
    /// Number of the job.
    pub job: u64,
    /// The job.
    pub payload: J,
}

/// Worker to parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message<P, R> {
    /// What was done up to now; also the sign that the worker is alive.
    Progress {
        /// [`VERSION`].
        version: u32,
        /// Number of the job.
        job: u64,
        /// The state.
        payload: P,
    },
    /// The job has ended.
    Answer {
        /// [`VERSION`].
        version: u32,
        /// Number of the job.
        job: u64,
        /// The answer.
        payload: R,
    },
}

/// One test to run on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Test id: for messages.
    pub id: String,
    /// Text of the test.
    pub text: String,
    /// How it is told, by the words of its [`Variant`](crate::Variant); empty for the default.
    pub variant: String,
    /// [Hash](crate::Runnable::hash) of the kernels that are planned; a worker that compiles others runs nothing. Empty where
    /// none are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Selector of the device.
    pub device: String,
    /// How the test is spread; the preset of the device where absent.
    pub stress: Option<Stress>,
    /// Instances wanted; together with `seconds`, whichever is used up first ends the run.
    pub instances: Option<u64>,
    /// Time for dispatches.
    pub seconds: Option<f64>,
    /// Seed of the drawn parameters.
    pub seed: u64,
    /// Words that some instance may show.
    pub plausible: Vec<u32>,
    /// Whether a part of the budget goes to the twin of a test whose threads meet in a control barrier, or whose outcomes
    /// did not show that its threads overlapped.
    pub twin: bool,
    /// Outcomes that a serial order of whole threads produces: values in the order of the test's observables.
    pub serial: Vec<Vec<u64>>,
    /// Instances with another outcome that make the twin of a test needless whose threads may overlap.
    pub enough: u64,
    /// How much of `seconds` the run takes in company.
    #[serde(default)]
    pub parts: Parts,
    /// How long a submission may take, in seconds.
    pub patience: f64,
    /// The job that is likely to follow: its kernels are compiled while this one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<Job>>,
}

/// What a worker has seen up to now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Of the test.
    pub observation: WireObservation,
    /// Of its twin.
    pub twin: Option<WireObservation>,
}

/// What became of a job. What was seen is there in any case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The device; absent where there was none.
    pub device: Option<Identity>,
    /// What it can do.
    pub capabilities: Option<Capabilities>,
    /// The stress that was used.
    pub stress: Option<Stress>,
    /// The memory type that the locations lay in, by the names of its properties; behind `and` that of those that lay apart.
    pub memory: Option<String>,
    /// Why the host counted all outcomes although the device was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by_host: Option<String>,
    /// The stage of the test's variant runs its invocations one after another: partners did not wait for one another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial_stage: bool,
    /// Host memory that the worker has used at most since it began, in bytes; absent where the platform does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// What was seen of the test.
    pub observation: WireObservation,
    /// Why the run, or that of the twin behind it, ended before its time.
    pub failure: Option<Failure>,
    /// What was seen of the twin.
    pub twin: Option<WireObservation>,
    /// Messages of the validation layers.
    pub validation: Vec<String>,
}

/// Why a worker has no full answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Failure {
    /// The text is no test.
    #[error("{message}")]
    Test {
        /// What the reader says.
        message: String,
    },
    /// The test cannot be placed on any device.
    #[error("{rule}")]
    NotPlaceable {
        /// The rule by name.
        rule: String,
    },
    /// The device lacks a feature, or is too small.
    #[error("{what}")]
    Lacks {
        /// What it lacks, by name.
        what: String,
    },
    /// There is no such device, or no driver.
    #[error("{message}")]
    NoDevice {
        /// What was looked for.
        message: String,
    },
    /// The stress cannot be had on the device.
    #[error("{message}")]
    Stress {
        /// Which value, and why.
        message: String,
    },
    /// The device executes nothing.
    #[error("the device executes nothing")]
    NullDevice,
    /// The driver gave up the device.
    #[error("{message}")]
    DeviceLost {
        /// During what.
        message: String,
    },
    /// A submission did not end.
    #[error("{message}")]
    TimedOut {
        /// After how long.
        message: String,
    },
    /// Another error of the driver.
    #[error("{message}")]
    Driver {
        /// What it said.
        message: String,
    },
    /// Parts of this program contradict one another.
    #[error("{message}")]
    Internal {
        /// How.
        message: String,
    },
}

impl Failure {
    /// Whether device and driver may be in a state that no further job should meet.
    pub fn spoils_worker(&self) -> bool {
        matches!(self, Failure::DeviceLost { .. } | Failure::TimedOut { .. } | Failure::Driver { .. })
    }

    /// The same, said of a test's twin.
    pub(crate) fn of_the_twin(mut self) -> Failure {
        match &mut self {
            Failure::Test { message }
            | Failure::NoDevice { message }
            | Failure::Stress { message }
            | Failure::DeviceLost { message }
            | Failure::TimedOut { message }
            | Failure::Driver { message }
            | Failure::Internal { message } => message.insert_str(0, "with its twin: "),
            Failure::NotPlaceable { .. } | Failure::Lacks { .. } | Failure::NullDevice => {}
        }
        self
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Failure {
        let message = cause.to_string();
        match cause {
            Cause::Device(error) => error.into(),
            Cause::TimedOut { .. } => Failure::TimedOut { message },
            Cause::NullDevice => Failure::NullDevice,
            Cause::TooSmall(what) => Failure::Lacks { what: format!("room for {what}") },
            Cause::Kernel(_) | Cause::Disagreement { .. } => Failure::Internal { message },
            Cause::Stress(_) => Failure::Stress { message },
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        let message = error.to_string();
        match error {
            DeviceError::NoLoader(_) | DeviceError::NoDriver(_) | DeviceError::NoSuchDevice(_) => {
                Failure::NoDevice { message }
            }
            DeviceError::Unsupported(what) => Failure::Lacks { what },
            DeviceError::DeviceLost(_) => Failure::DeviceLost { message },
            DeviceError::StepBudget => Failure::TimedOut { message },
            DeviceError::OutOfMemory(_) | DeviceError::Driver { .. } | DeviceError::NotExecuted(_) => {
                Failure::Driver { message }
            }
            DeviceError::Busy | DeviceError::InvalidPlan(_) => Failure::Internal { message },
        }
    }
}

impl From<shaders::CompileError> for Failure {
    fn from(error: shaders::CompileError) -> Failure {
        match error {
            shaders::CompileError::NotPlaceable { rule } => Failure::NotPlaceable { rule },
            large @ shaders::CompileError::WorkgroupTooLarge { .. } => {
                Failure::Lacks { what: large.to_string() }
            }
        }
    }
}

/// Values of an outcome in the order of the test's observables, and a count.
type Counts = Vec<(Vec<u64>, u64)>;

/// [`Observation`] on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireObservation {
    /// Values of an outcome in the order of the test's observables, and its count.
    pub histogram: Counts,
    /// Raw result words of an instance that was written in part, and their count.
    pub unexpected: Vec<(Vec<u32>, u64)>,
    /// As in [`Observation`].
    pub unresolved: u64,
    /// As in [`Observation`].
    pub not_told_apart: u64,
    /// As in [`Observation`].
    pub not_executed: u64,
    /// As in [`Observation`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// As in [`Observation`].
    pub dispatches: u64,
    /// As in [`Observation`].
    pub discarded_dispatches: u64,
    /// As in [`Observation`].
    pub seconds: f64,
    /// Of [`Observation::batches`] the total, and by outcome how many showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<(u64, Counts)>,
    /// Of [`Observation::stretches`] the histograms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Counts>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<&Observation> for WireObservation {
    fn from(observation: &Observation) -> WireObservation {
        let values = |outcome: &Outcome| outcome.0.iter().map(|value| value.0).collect();
        let counts = |histogram: &Histogram| -> Counts {
            histogram.counts.iter().map(|(outcome, count)| (values(outcome), *count)).collect()
        };
        WireObservation {
            histogram: counts(&observation.histogram),
            stretches: observation.stretches.iter().map(counts).collect(),
            unexpected: observation.unexpected.iter().map(|(raw, count)| (raw.clone(), *count)).collect(),
            unresolved: observation.unresolved,
            not_told_apart: observation.not_told_apart,
            not_executed: observation.not_executed,
            repeated: observation.repeated,
            dispatches: observation.dispatches,
            discarded_dispatches: observation.discarded_dispatches,
            seconds: observation.seconds,
            batches: observation.batches.as_ref().map(|batches| {
                let by_outcome = batches.by_outcome.iter();
                (batches.total, by_outcome.map(|(outcome, count)| (values(outcome), *count)).collect())
            }),
        }
    }
}

impl From<&WireObservation> for Observation {
    fn from(wire: &WireObservation) -> Observation {
        let outcome = |values: &Vec<u64>| Outcome(values.iter().map(|value| Value(*value)).collect());
        let histogram = |counts: &Counts| {
            let mut histogram = Histogram::default();
            for (values, count) in counts {
                histogram.add(outcome(values), *count);
            }
            histogram
        };
        let mut unexpected = BTreeMap::new();
        for (raw, count) in &wire.unexpected {
            *unexpected.entry(raw.clone()).or_default() += count;
        }
        Observation {
            histogram: histogram(&wire.histogram),
            stretches: wire.stretches.iter().map(histogram).collect(),
            unexpected,
            unresolved: wire.unresolved,
            not_told_apart: wire.not_told_apart,
            not_executed: wire.not_executed,
            repeated: wire.repeated,
            dispatches: wire.dispatches,
            discarded_dispatches: wire.discarded_dispatches,
            seconds: wire.seconds,
            batches: wire.batches.as_ref().map(|(total, by_outcome)| Batches {
                total: *total,
                by_outcome: by_outcome.iter().map(|(values, count)| (outcome(values), *count)).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_survive_the_wire() {
        let mut observation = Observation {
            unexpected: BTreeMap::from([(vec![1, u32::MAX], 3), (Vec::new(), 1)]),
            unresolved: 1,
            not_told_apart: 8,
            not_executed: 2,
            repeated: 6,
            dispatches: 4,
            discarded_dispatches: 5,
            seconds: 0.25,
            batches: Some(Batches { total: 7, by_outcome: BTreeMap::from([(Outcome(vec![Value(3)]), 2)]) }),
            ..Observation::default()
        };
        observation.histogram.add(Outcome(vec![Value(0), Value(u64::MAX)]), 9);
        observation.histogram.add(Outcome(vec![Value(1), Value(0)]), 8);
        observation.stretches = vec![observation.histogram.clone(), Histogram::default()];
        let text = serde_json::to_string(&WireObservation::from(&observation)).unwrap();
        assert!(!text.contains('\n'));
        let read: WireObservation = serde_json::from_str(&text).unwrap();
        assert_eq!(Observation::from(&read), observation);
    }

    #[test]
    fn failures_have_a_kind() {
        let text = serde_json::to_string(&Failure::from(DeviceError::DeviceLost("vkQueueSubmit"))).unwrap();
        assert_eq!(text, r#"{"kind":"device_lost","message":"the device was lost during vkQueueSubmit"}"#);
    }
}
