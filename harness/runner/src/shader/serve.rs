//! The worker for jobs of user shaders.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Shader, ShaderObservations, ShaderSettings, run};
use crate::stress::Stress;
use crate::wire::IncompleteReason;
use crate::worker::{
    Devices, HasObservations, MakeDevice, PROGRESS_INTERVAL, ProgressSink, WorkerAnswer, serve_on,
};

/// A job: a shader to run on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserShaderJob {
    /// The id, for messages.
    pub id: String,
    pub device: String,
    /// The shader with its inputs.
    pub shader: Shader,
    /// Words whose values are reported for all contents, each as index of the writable buffer and of the
    /// word.
    pub watched: Vec<(u32, u64)>,
    /// The maximum number of dispatches.
    pub instances: Option<u64>,
    /// Time limit in seconds.
    pub seconds: Option<f64>,
    pub seed: u64,
    /// The stress; the preset of the device if absent.
    pub stress: Option<Stress>,
    /// Time limit of a submission in seconds.
    pub patience: f64,
}

/// The result of a job.
pub type Answer = WorkerAnswer<ShaderObservations>;

impl HasObservations for ShaderObservations {
    fn has_observations(&self) -> bool {
        self.dispatches > 0
    }
}

/// Serves jobs of user shaders from standard input until it ends, like [`crate::worker::serve`].
///
/// # Errors
/// If an answer cannot be written, or a line of the parent cannot be read.
pub fn serve(make_device: MakeDevice<'_>) -> io::Result<()> {
    serve_on(make_device, PROGRESS_INTERVAL, |job: &UserShaderJob, devices, say| {
        WorkerAnswer::build_with(|answer| fill_answer(answer, job, devices, say))
    })
}

fn fill_answer(
    answer: &mut Answer,
    job: &UserShaderJob,
    devices: &mut Devices<'_>,
    report_progress: ProgressSink<'_, ShaderObservations>,
) -> Result<(), IncompleteReason> {
    let device = devices.get(&job.device)?;
    // Reports progress: the device is open.
    let _ = report_progress(&ShaderObservations::default);
    let stress = match &job.stress {
        Some(stress) => stress.clone(),
        None => Stress::for_device(device.identity(), device.capabilities())
            .map_err(|error| IncompleteReason::Stress(error.to_string()))?,
    };
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let settings = ShaderSettings {
        instances: job.instances,
        time: job.seconds.map(duration),
        seed: job.seed,
        stress,
        submission_timeout: duration(job.patience),
        watched: job.watched.clone(),
    };
    let (seen, cause) = run(device, &job.shader, &settings, &mut |seen| report_progress(seen));
    answer.seen = seen;
    answer.validation = device.validation_messages();
    cause.map_or(Ok(()), |cause| Err(cause.into()))
}
