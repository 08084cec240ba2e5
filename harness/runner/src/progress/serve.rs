//! The worker's side of forward progress: reads jobs, runs them, and answers.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Placement, Seen, Settings, kernel, run_kernel};
use crate::pool::{self, Health};
use crate::runnable::{check, hash};
use crate::wire::{Failure, Message, Request, VERSION};
use crate::worker::{Devices, MakeDevice, prepare_process, requests, send};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What was seen.
    pub seen: Seen,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// Messages of the validation layers.
    pub validation: Vec<String>,
}

impl pool::Answer for Answer {
    fn health(&self) -> Health {
        match &self.failure {
            Some(failure) if failure.spoils_worker() => Health::Bad,
            _ if self.seen.runs > 0 => Health::Good,
            _ => Health::Unknown,
        }
    }

    fn ends_worker(&self) -> bool {
        self.health() == Health::Bad
    }
}

/// Serves jobs of forward progress from standard input until it ends, as [`crate::worker::serve`] does.
///
/// # Errors
/// When an answer cannot be written, or a line of the parent cannot be read.
pub fn serve(make_device: MakeDevice<'_>) -> io::Result<()> {
    let mut output = prepare_process()?;
    let mut devices = Devices::new(make_device);
    for line in requests() {
        let request: Request<Job> = serde_json::from_str(&line?).map_err(io::Error::other)?;
        if request.version != VERSION {
            return Err(io::Error::other(format!("version {} of a request", request.version)));
        }
        let job = request.job;
        let mut broken = None;
        let answer = answer(&request.payload, &mut devices, &mut |seen| {
            let message = Message::Progress { version: VERSION, job, payload: seen.clone() };
            if let Err(error) = send::<Seen, Answer>(&mut output, &message) {
                broken = Some(error);
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        let ends = pool::Answer::ends_worker(&answer);
        send::<Seen, Answer>(&mut output, &Message::Answer { version: VERSION, job, payload: answer })?;
        if ends {
            devices.forget();
            return Ok(());
        }
    }
    Ok(())
}

fn answer(job: &Job, devices: &mut Devices<'_>, on_run: &mut dyn FnMut(&Seen)) -> Answer {
    let mut answer = Answer { seen: Seen::default(), failure: None, validation: Vec::new() };
    let test = match litmus::syntax::parse(&job.text, &job.id) {
        Ok(test) => test,
        Err(errors) => {
            answer.failure = Some(Failure::Test { message: errors.to_string() });
            return answer;
        }
    };
    let device = match devices.get(&job.device) {
        Ok(device) => device,
        Err(error) => {
            answer.failure = Some(error.into());
            return answer;
        }
    };
    // Tells that the device is open.
    on_run(&Seen::default());
    let settings = Settings {
        placement: job.placement,
        runs: job.runs,
        enough: job.enough,
        longest: Duration::try_from_secs_f64(job.longest).unwrap_or_default(),
        seed: job.seed,
    };
    let kernel = kernel(&test, device.capabilities(), job.placement)
        .and_then(|kernel| check(&job.kernel, &hash(&kernel.words)).map(|()| kernel));
    (answer.seen, answer.failure) = match kernel {
        Ok(kernel) => run_kernel(device, &kernel, &settings, on_run),
        Err(failure) => (Seen::default(), Some(failure)),
    };
    answer.validation = device.validation_messages();
    answer
}
