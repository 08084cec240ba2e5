//! From what a worker reported to a verdict and its published line.

use std::time::Duration;

use litmus::{Observation, Overlap, Prediction, Test};
use model::{Budget, Options, settle};
use results::wire::{DriverRecord, Hashes, RunContext, RunLine};
use results::{Ending, Evidence, Judgement, Reason, Twin, judge};
use runner::pool::{Attempt, End, Failure, NotRun, Report};
use runner::wire::{Answer, Failure as Told, Snapshot, WireObservation};

use super::plan::{Cell, Plan, mark_filtered};
use crate::patience::patience;

/// What became of a run, before it is judged.
pub struct Ran {
    /// How it ended, or what the test is skipped for.
    pub ending: Result<Ending, String>,
    /// Everything that was seen in all attempts.
    pub seen: Observation,
    /// Everything that was seen of the twin.
    pub twin: Option<Observation>,
    /// The memory type that the locations lay in.
    pub memory: Option<String>,
    /// Why the host counted although the device was to.
    pub counted_by_host: Option<String>,
    /// Messages of the validation layers.
    pub validation: Vec<String>,
}

impl Ran {
    /// Reads a report. `last_failure` is how the last test before it failed, for tests that were not tried any more.
    pub fn new(report: Report<Snapshot, Answer>, last_failure: Option<Reason>) -> Ran {
        let mut ran = Ran {
            ending: Ok(Ending::Finished),
            seen: Observation::default(),
            twin: None,
            memory: None,
            counted_by_host: None,
            validation: Vec::new(),
        };
        for attempt in &report.earlier {
            ran.add(attempt);
        }
        ran.add(&report.last);
        ran.ending = ending(&report.last, last_failure);
        ran
    }

    fn add(&mut self, attempt: &Attempt<Snapshot, Answer>) {
        match (&attempt.end, &attempt.snapshot) {
            (End::Answered(answer), _) => {
                self.add_seen(&answer.observation, answer.twin.as_ref());
                self.memory.clone_from(&answer.memory);
                self.counted_by_host.clone_from(&answer.counted_by_host);
                self.validation.extend(answer.validation.iter().cloned());
            }
            (_, Some(snapshot)) => self.add_seen(&snapshot.observation, snapshot.twin.as_ref()),
            (_, None) => {}
        }
    }

    fn add_seen(&mut self, seen: &WireObservation, twin: Option<&WireObservation>) {
        self.seen.add(&seen.into());
        if let Some(twin) = twin {
            self.twin.get_or_insert_default().add(&twin.into());
        }
    }
}

fn ending(attempt: &Attempt<Snapshot, Answer>, last_failure: Option<Reason>) -> Result<Ending, String> {
    Ok(match &attempt.end {
        End::Answered(answer) => match &answer.failure {
            None => Ending::Finished,
            Some(Told::NotPlaceable { rule }) => return Err(rule.clone()),
            Some(Told::Lacks { what }) => return Err(what.clone()),
            Some(Told::NullDevice) => Ending::NullDevice,
            Some(told @ (Told::DeviceLost { .. } | Told::NoDevice { .. })) => {
                Ending::DeviceLost(told.to_string())
            }
            Some(told @ Told::TimedOut { .. }) => Ending::TimedOut(told.to_string()),
            Some(
                told
                @ (Told::Test { .. } | Told::Stress { .. } | Told::Driver { .. } | Told::Internal { .. }),
            ) => Ending::Crashed(told.to_string()),
        },
        End::Failed(failure @ Failure::TimedOut { .. }) => Ending::TimedOut(failure.to_string()),
        End::Failed(
            failure @ (Failure::Crashed { .. } | Failure::Garbled { .. } | Failure::CannotStart { .. }),
        ) => Ending::Crashed(failure.to_string()),
        End::NotRun(why @ NotRun::TimeIsUp) => Ending::TimedOut(why.to_string()),
        End::NotRun(why @ NotRun::GivenUp { .. }) => match last_failure {
            Some(Reason::TimedOut) => Ending::TimedOut(why.to_string()),
            Some(Reason::DeviceLost) => Ending::DeviceLost(why.to_string()),
            _ => Ending::Crashed(why.to_string()),
        },
    })
}

/// The longest that a twin is asked about.
const TWIN_PATIENCE: Duration = Duration::from_secs(1);

/// Instances of a test's twin with early reads whose outcome no serial order of whole threads produces. Only what is
/// known not to be serial counts.
fn early_reads(test: &Test, cell: &Cell, seen: &Observation) -> u64 {
    if test.overlap() != Overlap::Possible || seen.instances() == 0 {
        return 0;
    }
    let Some(twin) = runner::twin::with_early_reads(test) else { return 0 };
    let stop = patience(TWIN_PATIENCE);
    let options = Options { budget: Budget::until(&stop), ..Options::default() };
    let Ok(prediction) = model::predict(&twin, &cell.model.model, &options) else { return 0 };
    if !prediction.complete {
        return 0;
    }
    let interleaved = |outcome| prediction.outcomes.get(outcome).is_some_and(|says| !says.serial);
    let counts = seen.histogram.counts.iter();
    counts.filter(|(outcome, _)| interleaved(outcome)).map(|(_, count)| count).sum()
}

/// How a run failed, where it did.
pub fn failure_of(ending: &Result<Ending, String>) -> Option<Reason> {
    match ending {
        Ok(Ending::TimedOut(_)) => Some(Reason::TimedOut),
        Ok(Ending::Crashed(_)) => Some(Reason::Crashed),
        Ok(Ending::DeviceLost(_)) => Some(Reason::DeviceLost),
        Ok(Ending::Finished | Ending::NullDevice) | Err(_) => None,
    }
}

/// How long the model is asked about outcomes that its prediction does not list.
const SETTLING_PATIENCE: Duration = Duration::from_secs(5);

/// The prediction with the outcomes that were seen, where it lists none; nothing where it stands as it is.
fn settled(plan: &Plan, cell: &Cell, prediction: &Prediction, ran: &Ran) -> Option<Prediction> {
    if prediction.complete {
        return None;
    }
    let test = &plan.items[cell.item].judged;
    let seen = ran.seen.histogram.counts.keys();
    let seen = seen.chain(ran.twin.iter().flat_map(|twin| twin.histogram.counts.keys()));
    let stop = patience(SETTLING_PATIENCE);
    let options = Options { budget: Budget::until(&stop), ..Options::default() };
    let mut settled = settle(prediction, test, &cell.model.model, seen, &options).ok()??;
    mark_filtered(&plan.items[cell.item].loaded.test, &mut settled);
    Some(settled)
}

/// Everything of a line that the command line decides.
#[derive(Clone, Debug)]
pub struct LineContext {
    /// The seed of the whole run.
    pub seed: u64,
    /// `--instances`, where given.
    pub instances: Option<u64>,
    /// `--model`, where given.
    pub model: Option<String>,
    /// `--stress`, where given.
    pub stress: Option<String>,
    /// `--fault`, where given.
    pub fault: Option<String>,
}

impl LineContext {
    /// The line of a test that was not run.
    pub fn skipped(&self, plan: &Plan, cell: &Cell, missing: &str) -> RunLine {
        self.line(plan, cell, &[], &Judgement::skipped(missing), None, None)
    }

    /// Judges what was seen.
    pub fn judged(&self, plan: &Plan, cell: &Cell, ran: &Ran) -> RunLine {
        let (ending, prediction) = match (&ran.ending, &cell.ready) {
            (Ok(ending), Ok(prediction)) => (ending, prediction),
            (Err(missing), _) | (_, Err(missing)) => return self.skipped(plan, cell, missing),
        };
        let test = self.test(plan, cell);
        let twin = ran
            .twin
            .as_ref()
            .map(|observation| Twin { observation, early_reads: early_reads(test, cell, observation) });
        // Outcomes that are too many to list are asked about one by one, those alone that were seen.
        let settled = settled(plan, cell, prediction, ran);
        let prediction = settled.as_ref().unwrap_or(prediction);
        let judgement = judge(&Evidence { test, prediction, observation: &ran.seen, ending, twin });
        let (memory, by_host) = (ran.memory.clone(), ran.counted_by_host.clone());
        self.line(plan, cell, &prediction.observables, &judgement, memory, by_host)
    }

    fn test<'a>(&self, plan: &'a Plan, cell: &Cell) -> &'a Test {
        &plan.items[cell.item].judged
    }

    fn line(
        &self,
        plan: &Plan,
        cell: &Cell,
        observables: &[litmus::Observable],
        judgement: &Judgement,
        memory: Option<String>,
        counted_by_host: Option<String>,
    ) -> RunLine {
        let item = &plan.items[cell.item];
        let target = &plan.targets[cell.target];
        let identity = &target.listed.identity;
        let instances = self.instances.or(Some(judgement.instances).filter(|n| *n > 0));
        RunLine::new(
            &item.judged,
            observables,
            judgement,
            RunContext {
                id: item.loaded.source.id.clone(),
                device: target.name.clone(),
                model: cell.model.model.name().to_owned(),
                seed: self.seed,
                stress: target.stress.name.clone(),
                replay: self.replay(&item.loaded.source.argument, target.device(), instances),
                memory,
                counted_by_host,
                hashes: Hashes {
                    test: item.hash.clone(),
                    model: cell.model.hash.clone(),
                    kernel: cell.kernel.clone(),
                },
                tool: env!("CARGO_PKG_VERSION").to_owned(),
                driver: Some(driver_record(identity)),
                beside: cell.beside.clone().map(|beside| (*beside).clone()),
            },
        )
    }

    /// A command that runs one test again.
    fn replay(&self, test: &str, device: &str, instances: Option<u64>) -> String {
        let mut command =
            format!("vk-litmus run {} --device {} --seed {}", quoted(test), quoted(device), self.seed);
        if let Some(instances) = instances {
            command += &format!(" --instances {instances}");
        }
        if let Some(fault) = &self.fault {
            command += &format!(" --fault {}", quoted(fault));
        }
        if let Some(model) = &self.model {
            command += &format!(" --model {}", quoted(model));
        }
        if let Some(stress) = &self.stress {
            command += &format!(" --stress {}", quoted(stress));
        }
        command
    }
}

/// The published form of a driver.
pub fn driver_record(identity: &::plan::Identity) -> DriverRecord {
    DriverRecord {
        name: identity.driver_name.clone(),
        info: identity.driver_info.clone(),
        id: identity.driver_id,
        version: identity.driver_version,
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_./:@,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let cases = [
            ("mp/MP+rel-acq.wg@v", "mp/MP+rel-acq.wg@v"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }
}
