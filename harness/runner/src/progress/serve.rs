//! The worker for forward-progress jobs.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{PlacementObservations, ProgressSettings, UnitAssignment, compile_kernel, run_kernel};
use crate::runnable::{check_planned_kernel, hash_kernels};
use crate::wire::IncompleteReason;
use crate::worker::{Devices, HasObservations, MakeDevice, ProgressSink, WorkerAnswer, parse_test, serve_on};

/// A job: one test on a device in one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressJob {
    /// The test id, for messages.
    pub id: String,
    pub text: String,
    /// The planned kernel's [hash](crate::hash_kernels). A worker that compiles another kernel runs nothing.
    /// Empty if none is planned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    pub device: String,
    /// The assignment of copies.
    pub placement: UnitAssignment,
    /// The number of dispatches.
    pub runs: u32,
    /// Hangs after which no further dispatch is made.
    pub enough: u32,
    /// Time limit of a dispatch in seconds.
    pub longest: f64,
    /// The seed of the simulated device.
    pub seed: u64,
}

/// The result of a job.
pub type Answer = WorkerAnswer<PlacementObservations>;

impl HasObservations for PlacementObservations {
    fn has_observations(&self) -> bool {
        self.runs > 0
    }
}

/// Serves forward-progress jobs from standard input until it ends, like [`crate::worker::serve`].
///
/// # Errors
/// If an answer cannot be written, or a line of the parent cannot be read.
pub fn serve(make_device: MakeDevice<'_>) -> io::Result<()> {
    // Progress is reported after each dispatch, because the next one may hang.
    serve_on(make_device, Duration::ZERO, |job: &ProgressJob, devices, say| {
        WorkerAnswer::build_with(|answer| fill_answer(answer, job, devices, say))
    })
}

fn fill_answer(
    answer: &mut Answer,
    job: &ProgressJob,
    devices: &mut Devices<'_>,
    report_progress: ProgressSink<'_, PlacementObservations>,
) -> Result<(), IncompleteReason> {
    let test = parse_test(&job.text, &job.id)?;
    let device = devices.get(&job.device)?;
    // Reports progress: the device is open.
    let _ = report_progress(&PlacementObservations::default);
    let settings = ProgressSettings {
        placement: job.placement,
        runs: job.runs,
        max_hangs: job.enough,
        dispatch_timeout: Duration::try_from_secs_f64(job.longest).unwrap_or_default(),
        seed: job.seed,
    };
    let kernel = compile_kernel(&test, device.capabilities(), job.placement)
        .and_then(|kernel| check_planned_kernel(&job.kernel, &hash_kernels(&kernel.words)).map(|()| kernel));
    let failure = match kernel {
        Ok(kernel) => {
            let (seen, failure) = run_kernel(device, &kernel, &settings, &mut |seen| {
                let _ = report_progress(&|| seen.clone());
            });
            answer.seen = seen;
            failure
        }
        Err(failure) => Some(failure),
    };
    answer.validation = device.validation_messages();
    failure.map_or(Ok(()), Err)
}
