//! Measurements: runs one test under one stress for a short time in a worker process, and computes rates.

pub mod bench;
pub mod environments;
pub mod growth;
pub mod tune;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use litmus::{Observation, Outcome, Prediction, Test};
use model::{Budget, Model, PredictOptions, predict};
use results::bench::Counts;
use runner::pool::{self, AttemptEnd, Limits, PoolCallbacks, PoolEvent};
use runner::wire::{Job, JobResult, Snapshot};
use runner::{RunSettings, RunVariant, Stress};

use crate::kinds::litmus::plan::{LitmusPlan, told_for};
use crate::kinds::litmus::planned::DeviceTest;
use crate::kinds::litmus::{mutants, plausible};
use crate::patience::patience;
use crate::source::Loaded;
use crate::targets::DeviceTarget;
use crate::workers::{self, Process, Task, WorkerOutput};
use crate::{Failure, choice, inputs};

/// Time limit of a prediction.
const MAX_PREDICTION: Duration = Duration::from_secs(5);

/// A test with its predicted outcomes.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The id of the test.
    pub id: String,
    /// The text of the test.
    pub text: String,
    /// The words of its [`RunVariant`](runner::RunVariant).
    pub variant: String,
    /// The program that is judged.
    pub test: Test,
    /// The prediction of its model.
    pub prediction: Prediction,
}

impl Subject {
    /// Loads the tests that arguments name, in variants that the device can run.
    ///
    /// # Errors
    /// If a test is invalid, the device cannot run it, or its model has no answer.
    pub fn of_arguments<S: AsRef<str>>(
        arguments: &[S],
        target: &DeviceTarget,
    ) -> Result<Vec<Subject>, Failure> {
        let sources = arguments.iter().flat_map(|argument| inputs::of_argument(argument.as_ref()));
        let loaded: Vec<Loaded> = sources
            .map(|source| source.load().map_err(|rejected| rejected.failure))
            .collect::<Result<_, _>>()?;
        let told = told_for(std::slice::from_ref(target), loaded)?;
        told.into_iter().map(|loaded| Subject::new(loaded, target)).collect()
    }

    fn new(loaded: Loaded, target: &DeviceTarget) -> Result<Subject, Failure> {
        let Loaded { source, text, test } = loaded;
        let variant: RunVariant = source.variant.parse().map_err(Failure::input_error)?;
        let test = shaders::effective_test(&test, variant.shader)
            .map_err(|why| Failure::input_message(format!("{}: {why}", source.id)))?;
        let wanted = Model::default_for(test.dialect);
        let chains = target.listed.capabilities.availability_visibility_chains;
        let chosen =
            choice::load(answers::name_without_chains(wanted).filter(|_| !chains).unwrap_or(wanted))?;
        let stop = patience(MAX_PREDICTION);
        let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
        let prediction = predict(&test, &chosen.model, &options).map_err(Failure::input_error)?;
        Ok(Subject { id: source.id, text, variant: source.variant, test, prediction })
    }

    /// Counts an observation by the prediction.
    pub fn counts(&self, seen: &Observation) -> Counts {
        let sum = |wanted: &dyn Fn(&Outcome) -> bool| {
            seen.histogram.counts.iter().filter(|(outcome, _)| wanted(outcome)).map(|(_, count)| count).sum()
        };
        let says = |outcome: &Outcome| self.prediction.outcomes.get(outcome);
        Counts {
            instances: seen.accounted_instances(),
            interleaved: sum(&|outcome| says(outcome).is_none_or(|says| !says.serial)),
            weak: sum(&|outcome| says(outcome).is_none_or(|says| says.weak)),
            forbidden: sum(&|outcome| says(outcome).is_none_or(|says| !says.allowed))
                + seen.unexpected.values().sum::<u64>(),
            unresolved: seen.unresolved + seen.unrecorded_outcomes,
            not_executed: seen.not_executed,
            dispatches: seen.dispatches,
            seconds: seen.seconds,
        }
    }

    /// Counts the instances with the outcome in the test's question. For a mutant, each one is a kill.
    pub fn deaths(&self, seen: &Observation) -> u64 {
        let Some(question) = &self.test.question else { return 0 };
        let asked = |outcome: &Outcome| {
            outcome.meets_condition(&self.test, &self.prediction.observables, &question.condition)
        };
        let counts = seen.histogram.counts.iter();
        counts.filter(|(outcome, _)| asked(outcome)).map(|(_, count)| count).sum()
    }

    /// Returns a job for the test, without a budget.
    pub fn job(&self, selector: &str, stress: &Stress, seed: u64) -> Job {
        Job {
            id: self.id.clone(),
            text: self.text.clone(),
            variant: self.variant.clone(),
            device: selector.to_owned(),
            stress: Some(stress.clone()),
            seed,
            plausible: plausible(&self.prediction),
            patience: RunSettings::SUBMISSION_TIMEOUT.as_secs_f64(),
            ..Job::default()
        }
    }
}

/// A test whose question is about an allowed outcome.
#[derive(Clone, Debug)]
pub struct Relaxed {
    /// The test.
    pub subject: Subject,
    /// The tests that it is a mutant of: they differ only in synchronization, and forbid that outcome.
    pub mutant_of: Vec<String>,
}

impl Relaxed {
    /// Returns the relaxed tests of a plan for one device, in plan order.
    pub fn of_plan(plan: &LitmusPlan) -> Vec<Relaxed> {
        let mut parents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for cell in &plan.cells {
            for mutant in &cell.mutants {
                let parent = plan.items.get(cell.item).map(|item| item.loaded.source.id.clone());
                parents.entry(mutant).or_default().extend(parent);
            }
        }
        let relaxed = |cell: &DeviceTest| {
            let (item, prediction) = (plan.items.get(cell.item)?, cell.ready.as_ref().ok()?);
            mutants::allows(&item.judged, prediction).filter(|allows| *allows)?;
            let id = &item.loaded.source.id;
            let subject = Subject {
                id: id.clone(),
                text: item.loaded.text.clone(),
                variant: item.variant.to_string(),
                test: item.judged.clone(),
                prediction: Prediction::clone(prediction),
            };
            Some(Relaxed { subject, mutant_of: parents.get(id.as_str()).cloned().unwrap_or_default() })
        };
        plan.cells.iter().filter_map(relaxed).collect()
    }
}

/// One measurement of a test under a stress.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'a> {
    /// The test.
    pub subject: &'a Subject,
    /// The stress.
    pub stress: &'a Stress,
    /// The duration.
    pub time: Duration,
    /// The random seed.
    pub seed: u64,
}

/// The observation of a trial, or why it failed.
pub type Outcomes = Result<Observation, String>;

/// Runs trials in sequence in worker processes. Soon after `limit`, the remaining workers are killed.
///
/// # Errors
/// If no worker can be started.
pub fn run(
    target: &DeviceTarget,
    trials: &[Measurement<'_>],
    limit: Duration,
) -> Result<Vec<Outcomes>, Failure> {
    let job = |number: usize, share: Option<Duration>| {
        let Some(trial) = trials.get(number) else { return Job::default() };
        let time = share.map_or(trial.time, |share| share.min(trial.time));
        Job {
            seconds: Some(time.as_secs_f64()),
            ..trial.subject.job(&target.selector, trial.stress, trial.seed)
        }
    };
    let ended = run_jobs(&target.process, trials.len(), job, limit)?;
    Ok(ended.into_iter().map(|ended| ended.map(|answer| Observation::from(&answer.observation))).collect())
}

/// Runs numbered jobs in sequence in worker processes. Soon after `limit`, the remaining workers are killed.
///
/// # Errors
/// If no worker can be started.
pub fn run_jobs(
    process: &Process,
    jobs: usize,
    mut job: impl FnMut(usize, Option<Duration>) -> Job,
    limit: Duration,
) -> Result<Vec<Result<JobResult, String>>, Failure> {
    let program = workers::program()?;
    let limits = Limits { time: Some(limit), ..Limits::DEFAULT };
    let mut ended = Vec::with_capacity(jobs);
    pool::run(
        &limits,
        jobs,
        PoolCallbacks::<Job, Snapshot, JobResult> {
            make_command: &mut || process.command(&program, &Task::Run { validate: false }),
            make_job: &mut job,
            on_event: &mut |event| {
                if let PoolEvent::Finished(report) = event {
                    ended.push(match report.last.end {
                        AttemptEnd::Answered(answer) => match &answer.failure {
                            None => Ok(answer),
                            Some(failure) => Err(failure.to_string()),
                        },
                        AttemptEnd::Failed(failure) => Err(failure.to_string()),
                        AttemptEnd::NotRun(why) => Err(why.to_string()),
                    });
                }
                ControlFlow::Continue(())
            },
        },
    );
    Ok(ended)
}

/// Returns the output of a worker with a single answer.
///
/// # Errors
/// If it does not answer within `patience`; it is then killed.
pub fn ask(process: &Process, task: &Task, patience: Duration) -> Result<String, Failure> {
    match workers::ask(process, task, patience)? {
        WorkerOutput::Ended(Some(text), _) => Ok(text),
        WorkerOutput::Ended(None, status) => {
            Err(Failure::environment_message(format!("a worker ended without an answer ({status})")))
        }
        WorkerOutput::Nothing => Err(Failure::environment_message(format!(
            "a worker did not answer within {} s",
            patience.as_secs()
        ))),
    }
}
