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

use crate::kinds::litmus::plan::{LitmusPlan, select_variants};
use crate::kinds::litmus::planned::DeviceTest;
use crate::kinds::litmus::{mutants, plausible_values};
use crate::source::LoadedTest;
use crate::targets::DeviceTarget;
use crate::time_limit::stop_after;
use crate::workers::{self, WorkerEnvironment, WorkerOutput, WorkerTask};
use crate::{Failure, inputs, models};

/// Time limit of a prediction.
const PREDICTION_TIMEOUT: Duration = Duration::from_secs(5);

/// A test with its predicted outcomes.
#[derive(Clone, Debug)]
pub struct MeasuredTest {
    pub id: String,
    pub text: String,
    /// The words of its [`RunVariant`](runner::RunVariant).
    pub variant: String,
    /// The program that is judged.
    pub test: Test,
    pub prediction: Prediction,
}

impl MeasuredTest {
    /// Loads the tests that arguments name, in variants that the device can run.
    ///
    /// # Errors
    /// If a test is invalid, the device cannot run it, or its model has no answer.
    pub fn from_arguments<S: AsRef<str>>(
        arguments: &[S],
        target: &DeviceTarget,
    ) -> Result<Vec<MeasuredTest>, Failure> {
        let sources = arguments.iter().flat_map(|argument| inputs::argument_sources(argument.as_ref()));
        let loaded: Vec<LoadedTest> = sources
            .map(|source| source.load().map_err(|rejected| rejected.failure))
            .collect::<Result<_, _>>()?;
        let selected = select_variants(std::slice::from_ref(target), loaded)?;
        selected.into_iter().map(|loaded| MeasuredTest::new(loaded, target)).collect()
    }

    fn new(loaded: LoadedTest, target: &DeviceTarget) -> Result<MeasuredTest, Failure> {
        let LoadedTest { source, text, test } = loaded;
        let variant: RunVariant = source.variant.parse().map_err(Failure::input_error)?;
        let test = shaders::effective_test(&test, variant.shader)
            .map_err(|why| Failure::input_message(format!("{}: {why}", source.id)))?;
        let model_name = Model::default_for_dialect(test.dialect);
        let has_chains = target.listed.capabilities.availability_visibility_chains;
        let chosen = models::load(
            verdicts::name_without_chains(model_name).filter(|_| !has_chains).unwrap_or(model_name),
        )?;
        let stop = stop_after(PREDICTION_TIMEOUT);
        let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
        let prediction = predict(&test, &chosen.model, &options).map_err(Failure::input_error)?;
        Ok(MeasuredTest { id: source.id, text, variant: source.variant, test, prediction })
    }

    /// Counts an observation by the prediction.
    pub fn count_outcomes(&self, observation: &Observation) -> Counts {
        let sum_where = |is_counted: &dyn Fn(&Outcome) -> bool| {
            observation
                .histogram
                .counts
                .iter()
                .filter(|(outcome, _)| is_counted(outcome))
                .map(|(_, count)| count)
                .sum()
        };
        let prediction_of = |outcome: &Outcome| self.prediction.outcomes.get(outcome);
        Counts {
            instances: observation.accounted_instances(),
            interleaved: sum_where(&|outcome| prediction_of(outcome).is_none_or(|says| !says.serial)),
            weak: sum_where(&|outcome| prediction_of(outcome).is_none_or(|says| says.weak)),
            forbidden: sum_where(&|outcome| prediction_of(outcome).is_none_or(|says| !says.allowed))
                + observation.unexpected.values().sum::<u64>(),
            unresolved: observation.unresolved + observation.unrecorded_outcomes,
            not_executed: observation.not_executed,
            dispatches: observation.dispatches,
            seconds: observation.seconds,
        }
    }

    /// Counts the instances with the outcome of the test's condition. For a mutant, each is a kill.
    pub fn count_kills(&self, observation: &Observation) -> u64 {
        let Some(question) = &self.test.question else { return 0 };
        let meets_condition = |outcome: &Outcome| {
            outcome.meets_condition(&self.test, &self.prediction.observables, &question.condition)
        };
        let counts = observation.histogram.counts.iter();
        counts.filter(|(outcome, _)| meets_condition(outcome)).map(|(_, count)| count).sum()
    }

    /// Returns a job for the test, without a budget.
    pub fn new_job(&self, selector: &str, stress: &Stress, seed: u64) -> Job {
        Job {
            id: self.id.clone(),
            text: self.text.clone(),
            variant: self.variant.clone(),
            device: selector.to_owned(),
            stress: Some(stress.clone()),
            seed,
            plausible: plausible_values(&self.prediction),
            patience: RunSettings::SUBMISSION_TIMEOUT.as_secs_f64(),
            ..Job::default()
        }
    }
}

/// A test whose question is about an allowed outcome.
#[derive(Clone, Debug)]
pub struct RelaxedSubject {
    pub subject: MeasuredTest,
    /// The tests that it is a mutant of: they differ only in synchronization, and forbid that outcome.
    pub mutant_of: Vec<String>,
}

impl RelaxedSubject {
    /// Returns the relaxed tests of a plan for one device, in plan order.
    pub fn from_plan(plan: &LitmusPlan) -> Vec<RelaxedSubject> {
        let mut parents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for cell in &plan.device_tests {
            for mutant in &cell.mutants {
                let parent = plan.tests.get(cell.test_index).map(|item| item.loaded.source.id.clone());
                parents.entry(mutant).or_default().extend(parent);
            }
        }
        let relaxed = |cell: &DeviceTest| {
            let (item, prediction) = (plan.tests.get(cell.test_index)?, cell.known_prediction()?);
            mutants::is_condition_allowed(item.judged_test(), prediction).filter(|allows| *allows)?;
            let id = &item.loaded.source.id;
            let subject = MeasuredTest {
                id: id.clone(),
                text: item.loaded.text.clone(),
                variant: item.variant.to_string(),
                test: item.judged_test().clone(),
                prediction: prediction.clone(),
            };
            Some(RelaxedSubject { subject, mutant_of: parents.get(id.as_str()).cloned().unwrap_or_default() })
        };
        plan.device_tests.iter().filter_map(relaxed).collect()
    }
}

/// One measurement of a test under a stress.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'a> {
    pub subject: &'a MeasuredTest,
    pub stress: &'a Stress,
    pub time: Duration,
    pub seed: u64,
}

/// The observation of a trial, or why it failed.
pub type TrialResult = Result<Observation, String>;

/// Runs trials in sequence in worker processes. Soon after `limit`, the remaining workers are killed.
///
/// # Errors
/// If no worker can be started.
pub fn run_trials(
    target: &DeviceTarget,
    trials: &[Measurement<'_>],
    limit: Duration,
) -> Result<Vec<TrialResult>, Failure> {
    let job = |number: usize, share: Option<Duration>| {
        let Some(trial) = trials.get(number) else { return Job::default() };
        let time = share.map_or(trial.time, |share| share.min(trial.time));
        Job {
            seconds: Some(time.as_secs_f64()),
            ..trial.subject.new_job(&target.selector, trial.stress, trial.seed)
        }
    };
    let results = run_jobs(&target.worker_environment, trials.len(), job, limit)?;
    Ok(results.into_iter().map(|ended| ended.map(|answer| answer.observation)).collect())
}

/// Runs numbered jobs in sequence in worker processes. Soon after `limit`, the remaining workers are killed.
///
/// # Errors
/// If no worker can be started.
pub fn run_jobs(
    process: &WorkerEnvironment,
    jobs: usize,
    mut job: impl FnMut(usize, Option<Duration>) -> Job,
    limit: Duration,
) -> Result<Vec<Result<JobResult, String>>, Failure> {
    let program = workers::program_path()?;
    let limits = Limits { time: Some(limit), ..Limits::DEFAULT };
    let mut results = Vec::with_capacity(jobs);
    pool::run(
        &limits,
        jobs,
        PoolCallbacks::<Job, Snapshot, JobResult> {
            make_command: &mut || process.command(&program, &WorkerTask::Run { validate: false }),
            make_job: &mut job,
            on_event: &mut |event| {
                if let PoolEvent::Finished(report) = event {
                    results.push(match report.last.end {
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
    Ok(results)
}

/// Returns the output of a worker with a single answer.
///
/// # Errors
/// If it does not answer within `timeout`; it is then killed.
pub fn ask_worker(
    process: &WorkerEnvironment,
    task: &WorkerTask,
    timeout: Duration,
) -> Result<String, Failure> {
    match workers::run_single_answer_worker(process, task, timeout)? {
        WorkerOutput::Ended(Some(text), _) => Ok(text),
        WorkerOutput::Ended(None, status) => {
            Err(Failure::environment_message(format!("a worker ended without an answer ({status})")))
        }
        WorkerOutput::TimedOut => Err(Failure::environment_message(format!(
            "a worker did not answer within {} s",
            timeout.as_secs()
        ))),
    }
}
