//! Converts a worker's report to a verdict and its published line.

use std::time::Duration;

use litmus::{Histogram, Observation, Overlap, Prediction, Test};
use model::{Budget, PredictOptions, complete_prediction};
use results::read::{MAX_INSTANCES_PER_DISPATCH, MAX_INSTANCES_PER_SECOND};
use results::rejudge::{compare_with_hsa, outcome_from_state, verify_record};
use results::wire::{Hashes, LineVerdict, PartUnit, RunContext, RunLine, RunOutcome, RunParts, SpreadRun};
use results::{Ending, Evidence, Reason, Twin, judge};
use runner::SpreadPart;
use runner::pool::{Attempt, AttemptEnd, JobReport};
use runner::wire::{JobResult, Snapshot};

use super::plan::LitmusPlan;
use super::planned::{DeviceTest, mark_filtered};
use super::recorded::{RECORD_TIMEOUT, recompute_line};
use super::{LitmusKind, TestBudget};
use crate::kinds::result_line::{line_context, replay_command};
use crate::run::{JudgedJob, device_failure, job_ending};
use crate::time_limit::stop_after;

/// The combined result of all attempts to run a test, before it is judged.
struct CombinedAttempts {
    /// How the run ended, or the skip reason.
    ending: Result<Ending, String>,
    observation: Observation,
    twin: Option<Observation>,
    /// The memory type of the locations.
    memory: Option<String>,
    /// Why the host counted outcomes instead of the device.
    counted_by_host: Option<String>,
    /// The part under another layout.
    spread: Option<SpreadPart>,
    /// The stage runs its invocations sequentially.
    serial_stage: bool,
    /// Messages of the validation layers.
    validation: Vec<String>,
    /// Attempts are repeated runs, each of which is one part.
    is_repeated: bool,
}

impl CombinedAttempts {
    /// Combines a report. `before` is the failure of the last earlier test, for tests that were not tried
    /// after it.
    fn new(
        report: JobReport<Snapshot, JobResult>,
        before: Option<Reason>,
        is_repeated: bool,
    ) -> CombinedAttempts {
        let mut combined = CombinedAttempts {
            ending: Ok(Ending::Finished),
            observation: Observation::default(),
            twin: None,
            memory: None,
            counted_by_host: None,
            spread: None,
            serial_stage: false,
            validation: Vec::new(),
            is_repeated,
        };
        for attempt in &report.earlier {
            combined.add_attempt(attempt);
        }
        combined.add_attempt(&report.last);
        combined.ending = job_ending::<LitmusKind<'_>>(&report.last.end, before);
        combined
    }

    fn add_attempt(&mut self, attempt: &Attempt<Snapshot, JobResult>) {
        match (&attempt.end, &attempt.snapshot) {
            (AttemptEnd::Answered(answer), _) => {
                self.add_observation(&answer.observation, answer.twin.as_ref());
                self.memory.clone_from(&answer.memory);
                self.counted_by_host.clone_from(&answer.counted_by_host);
                self.add_spread(answer.spread.as_ref());
                self.serial_stage = answer.serial_stage;
                self.validation.extend(answer.validation.iter().cloned());
            }
            (_, Some(snapshot)) => {
                self.add_observation(&snapshot.observation, snapshot.twin.as_ref());
                self.add_spread(snapshot.spread.as_ref());
            }
            (_, None) => {}
        }
    }

    fn add_spread(&mut self, spread: Option<&SpreadPart>) {
        if let Some(spread) = spread {
            self.spread.get_or_insert_default().merge_from(spread);
        }
    }

    fn add_observation(&mut self, observation: &Observation, twin: Option<&Observation>) {
        let mut observation = observation.clone();
        if self.is_repeated && observation.dispatches > 0 {
            observation.parts = vec![observation.histogram.clone()];
        }
        self.observation.merge_from(&observation);
        if let Some(twin) = twin {
            self.twin.get_or_insert_default().merge_from(twin);
        }
    }
}

/// Time limit of the prediction for a twin.
const TWIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts the twin's instances with early reads whose outcome is not serial. Only outcomes that are provably
/// not serial count.
fn count_early_reads(test: &Test, cell: &DeviceTest, observation: &Observation) -> u64 {
    if test.thread_overlap() != Overlap::Possible || observation.accounted_instances() == 0 {
        return 0;
    }
    let Some(twin) = runner::twin::with_early_reads(test) else { return 0 };
    let stop = stop_after(TWIN_TIMEOUT);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let Ok(prediction) = model::predict(&twin, &cell.model.model, &options) else { return 0 };
    if !prediction.complete {
        return 0;
    }
    let is_interleaved =
        |outcome| prediction.outcomes.get(outcome).is_some_and(|predicted| !predicted.serial);
    let counts = observation.histogram.counts.iter();
    counts.filter(|(outcome, _)| is_interleaved(outcome)).map(|(_, count)| count).sum()
}

/// Time limit of the model for observed outcomes that an incomplete prediction does not list.
const SETTLING_TIMEOUT: Duration = Duration::from_secs(5);

/// Decides the observed outcomes that an incomplete prediction does not list; `None` if the prediction is
/// complete.
fn settle_prediction(
    plan: &LitmusPlan,
    cell: &DeviceTest,
    prediction: &Prediction,
    attempts: &CombinedAttempts,
) -> Option<Prediction> {
    if prediction.complete {
        return None;
    }
    let test = plan.tests[cell.test_index].judged_test();
    let observed = attempts.observation.histogram.counts.keys();
    // The twin without control barriers has the outcomes of the test; the one with early reads has more
    // registers.
    let twin = attempts.twin.as_ref().filter(|_| test.thread_overlap() == Overlap::ControlBarrier);
    let observed = observed.chain(twin.iter().flat_map(|twin| twin.histogram.counts.keys()));
    let stop = stop_after(SETTLING_TIMEOUT);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let mut settled = complete_prediction(prediction, test, &cell.model.model, observed, &options).ok()??;
    mark_filtered(&plan.tests[cell.test_index].loaded.test, &mut settled);
    Some(settled)
}

/// The prefix of message ids of synchronization validation.
const SYNCHRONIZATION_HAZARD: &str = "SYNC-HAZARD-";

/// Returns true if a validation message is expected and not an error of the run.
///
/// A test that races by the model has a synchronization hazard. Draws of different stages that a dependency
/// joins have a hazard on the results buffer: they write disjoint words without order, but the layers track
/// whole buffers.
fn is_excused(message: &str, is_racy: bool, has_mixed_stages: bool) -> bool {
    let is_hazard = |kind: &str| message.contains(&format!("{SYNCHRONIZATION_HAZARD}{kind}"));
    is_racy && is_hazard("")
        || has_mixed_stages && is_hazard("WRITE-AFTER-WRITE") && message.contains("[results]")
}

pub fn skipped_line(run: &LitmusKind<'_>, cell: &DeviceTest, missing: &str) -> RunLine {
    let test = run.plan.tests[cell.test_index].judged_test();
    let line = RunLine::of_test(test, run_context(run, cell, 0)).with_verdict(LineVerdict::skipped(missing));
    with_comparisons(run, cell, &[], line)
}

/// Recomputes a recorded line from its counts and the prediction.
///
/// # Errors
/// The first difference from the record.
pub fn verify_recorded(run: &LitmusKind<'_>, cell: &DeviceTest, line: &RunLine) -> Result<RunLine, String> {
    let max_instances = max_instances(run);
    if line.instances > max_instances {
        return Err(format!(
            "{} instances, more than {max_instances}, which its budget allows",
            line.instances
        ));
    }
    if cell.skip_reason().is_some() {
        return Ok(line.clone());
    }
    let planned = &run.plan.tests[cell.test_index];
    let line = match cell.known_prediction().filter(|prediction| prediction.complete) {
        Some(prediction) => verify_record(line, planned.judged_test(), prediction, &cell.model.hash)?,
        None => recompute_line(line, planned, &cell.model, RECORD_TIMEOUT)?,
    };
    Ok(with_comparisons(run, cell, &planned.judged_test().observables(), line))
}

/// Returns an upper limit of the instances of one test within the budget of the run.
fn max_instances(run: &LitmusKind<'_>) -> u64 {
    match run.budget {
        // Dispatches in flight may exceed the budget.
        TestBudget::Instances(instances) => instances.saturating_add(MAX_INSTANCES_PER_DISPATCH),
        TestBudget::Time(time) => {
            MAX_INSTANCES_PER_DISPATCH.saturating_add((time.as_secs_f64() * MAX_INSTANCES_PER_SECOND) as u64)
        }
    }
}

/// Judges a worker's report.
pub fn judge_report(
    run: &LitmusKind<'_>,
    cell: &DeviceTest,
    report: JobReport<Snapshot, JobResult>,
    before: Option<Reason>,
) -> JudgedJob {
    let attempts = CombinedAttempts::new(report, before, run.options.repeats > 1);
    let is_racy = cell.known_prediction().is_some_and(Prediction::is_undefined);
    let has_mixed_stages = run.plan.tests[cell.test_index].variant.shader.stage.is_mixed();
    let validation = attempts
        .validation
        .iter()
        .filter(|message| !is_excused(message, is_racy, has_mixed_stages))
        .cloned()
        .collect();
    JudgedJob {
        line: judged_line(run, cell, &attempts),
        failure: device_failure(&attempts.ending),
        validation,
    }
}

fn judged_line(run: &LitmusKind<'_>, cell: &DeviceTest, attempts: &CombinedAttempts) -> RunLine {
    let plan = run.plan;
    let ending = match (&attempts.ending, cell.skip_reason()) {
        (Ok(ending), None) => ending,
        (Err(missing), _) | (Ok(_), Some(missing)) => return skipped_line(run, cell, missing),
    };
    let test = plan.tests[cell.test_index].judged_test();
    let unknown = Prediction { observables: test.observables(), ..Prediction::default() };
    let prediction = cell.known_prediction().unwrap_or(&unknown);
    let twin = attempts
        .twin
        .as_ref()
        .map(|observation| Twin { observation, early_reads: count_early_reads(test, cell, observation) });
    // A prediction with too many outcomes to list decides only the observed ones.
    let settled = settle_prediction(plan, cell, prediction, attempts);
    let prediction = settled.as_ref().unwrap_or(prediction);
    let capabilities = &plan.targets[cell.target_index].listed.capabilities;
    let bound = capabilities.loop_budget.filter(|_| shaders::has_loops(test));
    let bound = bound.map(|budget| format!("the device ends loops after {budget} iterations"));
    let observation = &attempts.observation;
    let evidence = Evidence {
        test,
        prediction,
        observation,
        ending,
        twin,
        explaining_limit: bound.as_deref(),
        is_stage_serial: attempts.serial_stage,
    };
    let mut line = RunLine {
        memory: attempts.memory.clone(),
        counted_by_host: attempts.counted_by_host.clone(),
        spread: attempts.spread.as_ref().map(spread_run),
        ..judge(&evidence, run_context(run, cell, observation.accounted_instances()))
    };
    let unit = if run.options.repeats > 1 { PartUnit::Run } else { PartUnit::Part };
    let counts = |row: &RunOutcome, part: &Histogram| {
        let outcome = outcome_from_state(&row.state, test, &prediction.observables);
        outcome.and_then(|outcome| part.counts.get(&outcome).copied()).unwrap_or_default()
    };
    // After a change of the stress, parts of a run have no common rate. Whole runs have one: each may change it.
    let parts = &observation.parts;
    let is_comparable = unit == PartUnit::Run || line.spread.is_none();
    if parts.len() >= MIN_PARTS && line.batches.is_none() && is_comparable {
        line.parts = Some(RunParts { unit, instances: parts.iter().map(Histogram::total_count).collect() });
        for row in &mut line.outcomes {
            row.parts = parts.iter().map(|part| counts(row, part)).collect();
        }
    }
    with_comparisons(run, cell, &prediction.observables, line)
}

/// Smallest number of parts from which a record lists them.
const MIN_PARTS: usize = 3;

fn spread_run(part: &SpreadPart) -> SpreadRun {
    let stress = part.stress.as_ref().and_then(|stress| stress.to_toml().ok()).unwrap_or_default();
    SpreadRun { first: part.first, second: part.second, weak: part.weak, stress }
}

/// Returns the facts of a run, which had this many instances.
fn run_context(run: &LitmusKind<'_>, cell: &DeviceTest, instances: u64) -> RunContext {
    let LitmusKind { plan, options, seed, .. } = *run;
    let item = &plan.tests[cell.test_index];
    let target = &plan.targets[cell.target_index];
    let instances = options.instances.or(Some(instances).filter(|n| *n > 0));
    let argument = item.loaded.source.argument.as_str();
    let repeats = (options.repeats > 1).then(|| options.repeats.to_string());
    let flags: Vec<_> = options.replay_flags().into_iter().chain([("repeat", repeats.as_deref())]).collect();
    let replay = replay_command(&[argument], target, seed, instances, &flags);
    let context = line_context(target, &cell.model, seed, replay);
    let hashes =
        Hashes { test: item.hash.clone(), kernel: cell.kernel_hash.clone(), ..context.hashes.clone() };
    RunContext { id: item.loaded.source.id.clone(), hashes, ..context }
}

/// Adds HSA's answers and the mutants of the test to a line.
fn with_comparisons(
    run: &LitmusKind<'_>,
    cell: &DeviceTest,
    observables: &[litmus::Observable],
    line: RunLine,
) -> RunLine {
    let line = RunLine { mutants: cell.mutants.clone(), hsa: None, ..line };
    match &cell.hsa_comparison {
        Some(comparison) => {
            let test = run.plan.tests[cell.test_index].judged_test();
            compare_with_hsa(&line, test, observables, comparison)
        }
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages for draws of different stages: on the results, on another buffer, and for a read.
    #[test]
    fn only_write_hazards_on_results_are_excused() {
        let hazard_message = |kind: &str, buffer: &str| {
            format!(
                "Validation Error: [ SYNC-HAZARD-{kind} ] | vkCmdDraw: Hazard for VkBuffer 0x42[{buffer}]"
            )
        };
        let results = hazard_message("WRITE-AFTER-WRITE", "results");
        assert!(is_excused(&results, false, true) && !is_excused(&results, false, false));
        for message in
            [hazard_message("WRITE-AFTER-WRITE", "locations"), hazard_message("READ-AFTER-WRITE", "results")]
        {
            assert!(!is_excused(&message, false, true) && is_excused(&message, true, false), "{message}");
        }
        assert!(!is_excused("VUID-vkCmdDraw-None-02699", true, true));
    }
}
