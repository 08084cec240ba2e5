//! The worker's side of forward progress: reads jobs, runs them, and answers.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Placement, Seen, Settings, kernel, run_kernel};
use crate::runnable::{check, hash};
use crate::wire::Failure;
use crate::worker::{Devices, HasSeen, MakeDevice, Say, Served, serve_on, test_of};

/// A test to run on a device in one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Test id: for messages.
    pub id: String,
    /// Text of the test.
    pub text: String,
    /// [Hash](crate::hash()) of the kernel that is planned; a worker that compiles another runs nothing. Empty where none is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Selector of the device.
    pub device: String,
    /// Where copies go.
    pub placement: Placement,
    /// Dispatches.
    pub runs: u32,
    /// Dispatches that did not end after which no further one is made.
    pub enough: u32,
    /// The longest that a dispatch is waited for, in seconds.
    pub longest: f64,
    /// Decides what the device itself draws.
    pub seed: u64,
}

/// What became of a job.
pub type Answer = Served<Seen>;

impl HasSeen for Seen {
    fn anything(&self) -> bool {
        self.runs > 0
    }
}

/// Serves jobs of forward progress from standard input until it ends, as [`crate::worker::serve`] does.
///
/// # Errors
/// When an answer cannot be written, or a line of the parent cannot be read.
pub fn serve(make_device: MakeDevice<'_>) -> io::Result<()> {
    // Each dispatch may be the one after which nothing comes any more.
    serve_on(make_device, Duration::ZERO, |job: &Job, devices, say| {
        Served::of(|answer| fill(answer, job, devices, say))
    })
}

fn fill(
    answer: &mut Answer,
    job: &Job,
    devices: &mut Devices<'_>,
    say: Say<'_, Seen>,
) -> Result<(), Failure> {
    let test = test_of(&job.text, &job.id)?;
    let device = devices.get(&job.device)?;
    // Tells that the device is open.
    let _ = say(&Seen::default);
    let settings = Settings {
        placement: job.placement,
        runs: job.runs,
        enough: job.enough,
        longest: Duration::try_from_secs_f64(job.longest).unwrap_or_default(),
        seed: job.seed,
    };
    let kernel = kernel(&test, device.capabilities(), job.placement)
        .and_then(|kernel| check(&job.kernel, &hash(&kernel.words)).map(|()| kernel));
    let failure = match kernel {
        Ok(kernel) => {
            let (seen, failure) = run_kernel(device, &kernel, &settings, &mut |seen| {
                let _ = say(&|| seen.clone());
            });
            answer.seen = seen;
            failure
        }
        Err(failure) => Some(failure),
    };
    answer.validation = device.validation_messages();
    failure.map_or(Ok(()), Err)
}
