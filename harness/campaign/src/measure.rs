//! Trials: one test under one stress for a short time in a worker process, and the rates that come of it.

pub mod bench;
pub mod environments;
pub mod growth;
pub mod tune;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use litmus::{Observation, Outcome, Prediction, Test};
use model::{Budget, Model, Options, predict};
use results::bench::Counts;
use runner::pool::{self, Calls, End, Event, Limits};
use runner::wire::{Answer, Job, Snapshot};
use runner::{Settings, Stress, Variant};

use crate::kinds::litmus::plan::{Cell, LitmusPlan, told_for};
use crate::kinds::litmus::{mutants, plausible};
use crate::patience::patience;
use crate::source::Loaded;
use crate::targets::Target;
use crate::workers::{self, Process, Said, Task};
use crate::{Failure, choice, inputs};

/// The longest that a model is asked about a test.
const MAX_PREDICTION: Duration = Duration::from_secs(5);

/// A test whose outcomes are known.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// How it is told, by the words of a [`Variant`](runner::Variant).
    pub variant: String,
    /// The test.
    pub test: Test,
    /// What its model says.
    pub prediction: Prediction,
}

impl Subject {
    /// The tests that arguments of a command line name, as a device can be asked.
    ///
    /// # Errors
    /// When one is no test, the device cannot be asked, or its model has no answer.
    pub fn of_arguments<S: AsRef<str>>(arguments: &[S], target: &Target) -> Result<Vec<Subject>, Failure> {
        let sources = arguments.iter().flat_map(|argument| inputs::of_argument(argument.as_ref()));
        let loaded: Vec<Loaded> = sources
            .map(|source| source.load().map_err(|rejected| rejected.failure))
            .collect::<Result<_, _>>()?;
        let told = told_for(std::slice::from_ref(target), loaded)?;
        told.into_iter().map(|loaded| Subject::new(loaded, target)).collect()
    }

    fn new(loaded: Loaded, target: &Target) -> Result<Subject, Failure> {
        let Loaded { source, text, test } = loaded;
        let variant: Variant = source.variant.parse().map_err(Failure::input_error)?;
        let test = shaders::meaning(&test, variant.told)
            .map_err(|why| Failure::input_message(format!("{}: {why}", source.id)))?;
        let wanted = Model::default_for(test.dialect);
        let chains = target.listed.capabilities.availability_visibility_chains;
        let chosen = choice::load(choice::without_chains(wanted).filter(|_| !chains).unwrap_or(wanted))?;
        let stop = patience(MAX_PREDICTION);
        let options = Options { budget: Budget::until(&stop), ..Options::default() };
        let prediction = predict(&test, &chosen.model, &options).map_err(Failure::input_error)?;
        Ok(Subject { id: source.id, text, variant: source.variant, test, prediction })
    }

    /// What an observation of the test counts.
    pub fn counts(&self, seen: &Observation) -> Counts {
        let sum = |wanted: &dyn Fn(&Outcome) -> bool| {
            seen.histogram.counts.iter().filter(|(outcome, _)| wanted(outcome)).map(|(_, count)| count).sum()
        };
        let says = |outcome: &Outcome| self.prediction.outcomes.get(outcome);
        Counts {
            instances: seen.instances(),
            interleaved: sum(&|outcome| says(outcome).is_none_or(|says| !says.serial)),
            weak: sum(&|outcome| says(outcome).is_none_or(|says| says.weak)),
            forbidden: sum(&|outcome| says(outcome).is_none_or(|says| !says.allowed))
                + seen.unexpected.values().sum::<u64>(),
            unresolved: seen.unresolved + seen.not_told_apart,
            not_executed: seen.not_executed,
            dispatches: seen.dispatches,
            seconds: seen.seconds,
        }
    }

    /// Instances that showed the outcome that the test asks about: the deaths of a mutant.
    pub fn deaths(&self, seen: &Observation) -> u64 {
        let Some(question) = &self.test.question else { return 0 };
        let asked =
            |outcome: &Outcome| outcome.meets(&self.test, &self.prediction.observables, &question.condition);
        let counts = seen.histogram.counts.iter();
        counts.filter(|(outcome, _)| asked(outcome)).map(|(_, count)| count).sum()
    }

    /// A job that runs it, without a budget.
    pub fn job(&self, selector: &str, stress: &Stress, seed: u64) -> Job {
        Job {
            id: self.id.clone(),
            text: self.text.clone(),
            variant: self.variant.clone(),
            device: selector.to_owned(),
            stress: Some(stress.clone()),
            seed,
            plausible: plausible(&self.prediction),
            patience: Settings::PATIENCE.as_secs_f64(),
            ..Job::default()
        }
    }
}

/// A test whose question is about an outcome that its model allows.
#[derive(Clone, Debug)]
pub struct Relaxed {
    /// The test.
    pub subject: Subject,
    /// The tests of the same plan that it is a mutant of: they differ in synchronization alone, and forbid that outcome.
    pub mutant_of: Vec<String>,
}

impl Relaxed {
    /// The relaxed tests of a plan for one device, in its order.
    pub fn of_plan(plan: &LitmusPlan) -> Vec<Relaxed> {
        let mut parents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for cell in &plan.cells {
            for mutant in &cell.mutants {
                let parent = plan.items.get(cell.item).map(|item| item.loaded.source.id.clone());
                parents.entry(mutant).or_default().extend(parent);
            }
        }
        let relaxed = |cell: &Cell| {
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

/// One test under one stress.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The test.
    pub subject: &'a Subject,
    /// How it is spread.
    pub stress: &'a Stress,
    /// For how long.
    pub time: Duration,
    /// Decides what is drawn.
    pub seed: u64,
}

/// A trial's observation, or why there is none.
pub type Outcomes = Result<Observation, String>;

/// Runs trials one after the other in worker processes; all of them end soon after `limit`, by force if they must.
///
/// # Errors
/// When no worker can be started at all.
pub fn run(target: &Target, trials: &[Trial<'_>], limit: Duration) -> Result<Vec<Outcomes>, Failure> {
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

/// Runs jobs by their numbers, one after the other in worker processes; all of them end soon after `limit`, by force if
/// they must.
///
/// # Errors
/// When no worker can be started at all.
pub fn run_jobs(
    process: &Process,
    jobs: usize,
    mut job: impl FnMut(usize, Option<Duration>) -> Job,
    limit: Duration,
) -> Result<Vec<Result<Answer, String>>, Failure> {
    let program = workers::program()?;
    let limits = Limits { time: Some(limit), ..Limits::DEFAULT };
    let mut ended = Vec::with_capacity(jobs);
    pool::run(
        &limits,
        jobs,
        Calls::<Job, Snapshot, Answer> {
            command: &mut || process.command(&program, &Task::Run { validate: false }),
            job: &mut job,
            event: &mut |event| {
                if let Event::Finished(report) = event {
                    ended.push(match report.last.end {
                        End::Answered(answer) => match &answer.failure {
                            None => Ok(answer),
                            Some(failure) => Err(failure.to_string()),
                        },
                        End::Failed(failure) => Err(failure.to_string()),
                        End::NotRun(why) => Err(why.to_string()),
                    });
                }
                ControlFlow::Continue(())
            },
        },
    );
    Ok(ended)
}

/// What the worker of a task prints that answers once.
///
/// # Errors
/// When it says nothing within `patience`: then it is ended.
pub fn ask(process: &Process, task: &Task, patience: Duration) -> Result<String, Failure> {
    match workers::ask(process, task, patience)? {
        Said::Ended(Some(text), _) => Ok(text),
        Said::Ended(None, status) => {
            Err(Failure::environment_message(format!("a worker ended without an answer ({status})")))
        }
        Said::Nothing => Err(Failure::environment_message(format!(
            "a worker did not answer within {} s",
            patience.as_secs()
        ))),
    }
}
