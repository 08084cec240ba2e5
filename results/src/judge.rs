//! Judging: derives one verdict from a prediction and an observation of one test, device and model.
//!
//! Sound in one direction: an observed outcome that the model forbids proves a violation, whatever happens
//! later in the run. An allowed outcome with count zero proves nothing, so `conforms` means only "exercised,
//! and no violation observed".

mod contradiction;

use litmus::{Observation, Outcome, Overlap, PredictedOutcome, Prediction, Race, Test, ThreadPlace};

pub use contradiction::find_contradiction;
pub(crate) use contradiction::has_invalid_results;

use crate::answer::has_no_allowed_outcome;
use crate::reason::Reason;
use crate::state;
use crate::statistics::find_drift;
use crate::wire::{
    DriftRecord, LineVerdict, RaceWord, RunContext, RunLine, RunOutcome, UnexpectedValues, VerdictWord,
};

/// Number of interleaved instances, or of early reads, from which a test counts as exercised.
pub const EXERCISED_THRESHOLD: u64 = 100;

/// Largest share of discarded dispatches for which the remaining ones are judged, even if the cause is known.
pub const DISCARDED_SHARE_LIMIT: f64 = 0.01;

/// The inputs of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The test that ran.
    pub test: &'a Test,
    /// The prediction of the model; it includes the outcomes that the test's filter excludes.
    pub prediction: &'a Prediction,
    /// The counts from the device.
    pub observation: &'a Observation,
    /// How the run ended.
    pub ending: &'a Ending,
    /// The observation of the relaxed variant of the test, if one ran: without control barriers, or with
    /// early reads.
    pub twin: Option<Twin<'a>>,
    /// Names the limit of this program that explains instances without a result. If `None`, an instance
    /// without a result is a fault of the device.
    pub explaining_limit: Option<&'a str>,
    /// True if a probe found that the device runs invocations of the test's stage sequentially.
    pub is_stage_serial: bool,
}

impl<'a> Evidence<'a> {
    /// Creates the evidence of a run without a twin and without a limit, in a stage whose invocations overlap.
    pub fn new(
        test: &'a Test,
        prediction: &'a Prediction,
        observation: &'a Observation,
        ending: &'a Ending,
    ) -> Evidence<'a> {
        let (twin, explaining_limit, is_stage_serial) = (None, None, false);
        Evidence { test, prediction, observation, ending, twin, explaining_limit, is_stage_serial }
    }
}

/// The observation of a variant of the test with one synchronization removed.
#[derive(Clone, Copy, Debug)]
pub struct Twin<'a> {
    /// The counts. Without control barriers, outcomes list the same observables as those of the original
    /// test.
    pub observation: &'a Observation,
    /// Number of early reads: reads before a control barrier that return a value another thread wrote before
    /// it. If the twin is the test with reads before and after its threads, the number of instances that no
    /// serial order of whole threads produces.
    pub early_reads: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The budget was used up.
    Finished,
    /// The worker process was ended at its deadline.
    TimedOut(String),
    /// The time budget ended before the test started.
    NoTime(String),
    /// The worker process exited without a result.
    Crashed(String),
    /// The driver reported the device as lost.
    DeviceLost(String),
    /// Device and host counted the outcomes of a dispatch differently.
    CountsDisagree(String),
    /// The device accepts work without executing it.
    NullDevice,
}

impl Ending {
    /// Returns the reason and the description of a run that did not finish.
    pub fn failure(&self) -> Option<(Reason, &str)> {
        match self {
            Ending::Finished => None,
            Ending::TimedOut(how) => Some((Reason::TimedOut, how)),
            Ending::NoTime(how) => Some((Reason::NoTime, how)),
            Ending::Crashed(how) => Some((Reason::Crashed, how)),
            Ending::DeviceLost(how) => Some((Reason::DeviceLost, how)),
            Ending::CountsDisagree(how) => Some((Reason::CountsDisagree, how)),
            Ending::NullDevice => Some((Reason::NullDevice, "the device executes nothing")),
        }
    }
}

/// Largest number of unexpected values that a verdict lists.
const MAX_LISTED_UNEXPECTED: usize = 3;

/// Returns the first of these descriptions of unexpected values, and the number of the others.
pub(crate) fn list_unexpected(mut all: impl Iterator<Item = String>) -> Vec<String> {
    let mut first: Vec<String> = all.by_ref().take(MAX_LISTED_UNEXPECTED).collect();
    match all.count() {
        0 => {}
        others => first.push(format!("{others} others")),
    }
    first
}

/// Judges a test by its prediction and its observation; the line has the facts of `context`.
pub fn judge(evidence: &Evidence<'_>, context: RunContext) -> RunLine {
    let &Evidence { test, prediction, observation, .. } = evidence;
    let observables = &prediction.observables;
    let counts = &observation.histogram.counts;
    // If the search ended early, an outcome without an execution so far may still be allowed: it is not listed.
    let is_listed = |(outcome, predicted): &(&Outcome, &PredictedOutcome)| {
        prediction.complete
            || prediction.race == Race::Free
            || predicted.allowed
            || counts.contains_key(*outcome)
    };
    let row = |(outcome, predicted): (&Outcome, &PredictedOutcome)| RunOutcome {
        count: counts.get(outcome).copied().unwrap_or_default(),
        batches: observation
            .batches
            .as_ref()
            .map(|batches| batches.by_outcome.get(outcome).copied().unwrap_or_default()),
        ..RunOutcome::new(test, observables, outcome, predicted)
    };
    let unpredicted = counts.iter().filter(|(outcome, _)| !prediction.outcomes.contains_key(outcome)).map(
        |(outcome, count)| UnexpectedValues { raw: outcome.0.iter().map(|v| v.0).collect(), count: *count },
    );
    let partial = observation.unexpected.iter().map(|(words, count)| UnexpectedValues {
        raw: words.iter().map(|w| u64::from(*w)).collect(),
        count: *count,
    });
    let serial = observed_outcomes(observation, prediction).filter(|(.., predicted)| !predicted.serial);
    let interleaved = serial.map(|(_, count, _)| count).sum();
    let line = RunLine {
        race: Some(judged_race(prediction)),
        instances: observation.accounted_instances(),
        interleaved,
        not_executed: observation.not_executed,
        unresolved: observation.unresolved + observation.unrecorded_outcomes,
        repeated: observation.repeated,
        seconds: observation.seconds,
        batches: observation.batches.as_ref().map(|batches| batches.total),
        outcomes: prediction.outcomes.iter().filter(is_listed).map(row).collect(),
        unexpected: unpredicted.chain(partial).filter(|u| u.count > 0).collect(),
        drift: find_drift(&observation.stretches).map(|drift| DriftRecord {
            state: state::state_from_outcome(test, observables, &drift.outcome),
            earlier: drift.earlier,
            later: drift.later,
            p: drift.p,
        }),
        ..RunLine::of_test(test, context)
    };
    let exercised = is_exercised(evidence, interleaved) && !is_everything_filtered(&line.outcomes);
    let line = RunLine { exercised, ..line };
    let verdict = derive_verdict(evidence, &line);
    let mut line = RunLine { exercised, ..line.with_verdict(verdict) };
    let is_reported = match line.verdict {
        VerdictWord::Violates => has_unexplained_dispatches(evidence, observation),
        _ if line.has_reason(Reason::CorruptMemory) => observation.misread_dispatches > 0,
        _ => line.has_reason(Reason::NotExecuted),
    };
    if line.not_executed > 0 && !is_reported {
        let why = evidence.explaining_limit.map(|bound| format!(" ({bound})")).unwrap_or_default();
        let mut not_executed = format!("{} instances were not executed{why}", line.not_executed);
        if observation.outside_grid > 0 {
            not_executed += "; ";
            not_executed += &describe_excess(observation.outside_grid);
        }
        line.detail = Some(match line.detail {
            Some(detail) => format!("{detail}; {not_executed}"),
            None => not_executed,
        });
    }
    line
}

/// Returns whether a program counts as racy: outcomes of an incomplete prediction, or of one without an
/// execution, are not judged.
pub(crate) fn judged_race(prediction: &Prediction) -> RaceWord {
    match prediction.race {
        _ if has_no_allowed_outcome(prediction) => RaceWord::Unknown,
        Race::Racy if prediction.is_undefined() => RaceWord::Racy,
        Race::Free | Race::Racy if prediction.complete => RaceWord::Free,
        Race::Free | Race::Racy | Race::Unknown => RaceWord::Unknown,
    }
}

/// Returns the predicted outcomes that were observed, with their counts.
fn observed_outcomes<'a>(
    observation: &'a Observation,
    prediction: &'a Prediction,
) -> impl Iterator<Item = (&'a Outcome, u64, &'a PredictedOutcome)> {
    let observed = observation.histogram.counts.iter().filter(|(_, count)| **count > 0);
    observed.filter_map(|(outcome, count)| Some((outcome, *count, prediction.outcomes.get(outcome)?)))
}

/// Returns true if the test's filter excludes every observed instance, so that none of them tests the
/// condition.
fn is_everything_filtered(rows: &[RunOutcome]) -> bool {
    rows.iter().any(|row| row.filtered) && rows.iter().all(|row| row.filtered || row.count == 0)
}

/// Returns true if enough instances overlapped for the forbidden outcome to be observable.
fn is_exercised(evidence: &Evidence<'_>, interleaved: u64) -> bool {
    let &Evidence { test, prediction, observation, twin, .. } = evidence;
    match test.thread_overlap() {
        Overlap::Possible => {
            let early_reads = twin.map_or(0, |twin| twin.early_reads);
            interleaved.max(early_reads) >= EXERCISED_THRESHOLD
        }
        // No serial order of whole threads passes a control barrier, so the number of interleaved instances
        // is no evidence here.
        Overlap::ControlBarrier => twin.is_some_and(|twin| {
            twin.early_reads >= EXERCISED_THRESHOLD
                || prediction.complete
                    && observed_outcomes(twin.observation, prediction).any(|(.., says)| !says.allowed)
        }),
        Overlap::Ordered => observation.accounted_instances() > 0 && observation.not_executed == 0,
    }
}

/// Returns why nothing is judged by a model without a consistent execution.
pub(crate) fn describe_no_execution(model: &str) -> String {
    format!(
        "no execution is consistent under {model}: run `vk-litmus check` on the test, or judge it by another `--model`"
    )
}

/// Derives the verdict from a line that has all counts.
fn derive_verdict(evidence: &Evidence<'_>, line: &RunLine) -> LineVerdict {
    let &Evidence { test, prediction, observation, ending, .. } = evidence;
    let race = prediction.race;
    let inconclusive = LineVerdict::inconclusive;

    let failure = ending.failure();
    if let Some((reason @ Reason::NullDevice, how)) = failure {
        return inconclusive(reason, how.to_owned());
    }

    // Under a model without any execution, every outcome would be a violation.
    if has_no_allowed_outcome(prediction) {
        return inconclusive(Reason::NotJudged, describe_no_execution(&prediction.model));
    }

    // Violations are checked first: a later crash or time-out does not invalidate the observed outcome.
    if line.race == Some(RaceWord::Free) {
        let mut proofs: Vec<String> = observed_outcomes(observation, prediction)
            .filter(|(.., predicted)| !predicted.allowed)
            .map(|(outcome, count, _)| {
                let outcome = state::format_outcome(test, &prediction.observables, outcome);
                format!("forbidden outcome {outcome} seen {}", format_times(count))
            })
            .collect();
        let unexpected = line.unexpected.iter();
        let unexpected = unexpected.map(|u| {
            format!("values that no execution produces, {:?}, seen {}", u.raw, format_times(u.count))
        });
        proofs.extend(list_unexpected(unexpected));
        if !proofs.is_empty() {
            if let Some((reason, how)) = failure {
                proofs.push(format!("the run ended early: {} ({how})", reason.name()));
            }
            let missing_dispatches =
                has_unexplained_dispatches(evidence, observation).then(|| describe_missing(observation));
            // After a broken read, the host may have read other words than a receipt covers.
            let misread = |seen: &Observation| seen.misread_dispatches > 0;
            let is_host_memory_read = has_host_access(test);
            let is_twin_misread =
                is_host_memory_read && evidence.twin.is_some_and(|twin| misread(twin.observation));
            let check = if misread(observation) || is_twin_misread {
                EvidenceCheck::NeighbourReceipts
            } else {
                EvidenceCheck::OwnReceipt
            };
            // No memory order invents values. Memory that host threads access is mapped while kernels run, so
            // that the driver may have changed it.
            if is_host_memory_read
                && (!line.unexpected.is_empty() || check == EvidenceCheck::NeighbourReceipts)
            {
                return inconclusive(
                    Reason::CorruptMemory,
                    describe_corruption(&proofs.join("; "), observation),
                );
            }
            return weigh_violation(&proofs.join("; "), missing_dispatches.as_deref(), check);
        }
    }

    if let Some((reason, how)) = failure {
        return inconclusive(reason, how.to_owned());
    }
    // A failure of the twin counts as a failure of the test. A twin with zero dispatches did not run.
    let runs = [("", Some(observation)), ("of the twin, ", evidence.twin.map(|twin| twin.observation))];
    let ran = runs.into_iter().filter_map(|(whose, seen)| Some((whose, seen?)));
    let ran = ran.filter(|(whose, seen)| whose.is_empty() || seen.dispatches > 0);
    let discarded = |is_too_much: &dyn Fn(&Observation) -> bool| {
        let (whose, seen) = ran.clone().find(|(_, seen)| is_too_much(seen))?;
        let reason = match seen.misread_dispatches {
            1.. if has_host_access(test) => Reason::CorruptMemory,
            _ => Reason::NotExecuted,
        };
        Some(inconclusive(reason, whose.to_owned() + &describe_missing(seen)))
    };
    let nothing_is_left =
        |seen: &Observation| seen.accounted_instances() == 0 || discarded_share(seen) > DISCARDED_SHARE_LIMIT;
    if let Some(verdict) = discarded(&nothing_is_left) {
        return verdict;
    }
    match race {
        Race::Racy if prediction.is_undefined() => {
            return LineVerdict::new(VerdictWord::Undefined, format!("racy under {}", prediction.model));
        }
        Race::Unknown => {
            return inconclusive(
                Reason::TimedOut,
                format!("the prediction of {} was cut short", prediction.model),
            );
        }
        Race::Free | Race::Racy if !prediction.complete => {
            return inconclusive(
                Reason::TimedOut,
                format!(
                    "{} was not enumerated completely: too many outcomes, or too little time",
                    prediction.model
                ),
            );
        }
        Race::Free | Race::Racy => {}
    }
    if observation.unrecorded_outcomes > 0 {
        return inconclusive(
            Reason::TimedOut,
            format!(
                "{} instances showed outcomes beyond the first {} different ones, which are counted \
                 together",
                observation.unrecorded_outcomes,
                observation.histogram.counts.len()
            ),
        );
    }
    if observation.accounted_instances() == observation.unresolved {
        return inconclusive(
            Reason::NoResolvedInstance,
            format!("all {} instances reached the bound of a spin loop", observation.unresolved),
        );
    }
    if let Some(verdict) = discarded(&|seen| has_unexplained_dispatches(evidence, seen)) {
        return verdict;
    }
    if !line.exercised {
        return inconclusive(Reason::NotExercised, describe_unexercised(evidence, line));
    }
    let detail = describe_thin_air(evidence);
    LineVerdict { verdict: VerdictWord::Conforms, reason: None, detail, exercised: true }
}

/// Describes observed outcomes that the specification allows and no known implementation produces.
fn describe_thin_air(evidence: &Evidence<'_>) -> Option<String> {
    let &Evidence { test, prediction, observation, .. } = evidence;
    let thin_air = observed_outcomes(observation, prediction).filter(|(.., predicted)| predicted.thin_air);
    let thin_air = thin_air.map(|(outcome, count, _)| {
        let outcome = state::format_outcome(test, &prediction.observables, outcome);
        format!(
            "values out of thin air seen {}: {outcome}, which no implementation was known to show",
            format_times(count)
        )
    });
    Some(thin_air.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Names the twin of a test whose threads synchronize by control barriers or interlocked sections.
fn unsynchronized_twin(test: &Test) -> &'static str {
    match test.interlock_order() {
        Some(_) => "the twin with empty interlocked sections",
        None => "the twin without control barriers",
    }
}

/// Describes why the test does not count as exercised.
fn describe_unexercised(evidence: &Evidence<'_>, line: &RunLine) -> String {
    if is_everything_filtered(&line.outcomes) {
        return format!("none of {} instances met the filter", line.instances);
    }
    if evidence.is_stage_serial {
        return format!("stage runs serially: {} instances", line.instances);
    }
    match evidence.test.thread_overlap() {
        Overlap::Possible => {
            let early = evidence.twin.map(|twin| {
                format!(
                    "; with early reads {} of {}",
                    twin.early_reads,
                    twin.observation.accounted_instances()
                )
            });
            format!(
                "{} interleaved of {} instances{}, {EXERCISED_THRESHOLD} are needed",
                line.interleaved,
                line.instances,
                early.unwrap_or_default()
            )
        }
        Overlap::ControlBarrier => match evidence.twin {
            None => format!("{} was not run", unsynchronized_twin(evidence.test)),
            Some(twin) => format!(
                "{} showed nothing that the test forbids in {} instances",
                unsynchronized_twin(evidence.test),
                twin.observation.accounted_instances()
            ),
        },
        Overlap::Ordered => format!("{} instances were not executed", line.not_executed),
    }
}

/// Returns true if host threads access the memory of a test.
fn has_host_access(test: &Test) -> bool {
    test.threads.iter().any(|thread| thread.place == ThreadPlace::Host)
}

/// Describes results that corrupt memory explains.
fn describe_corruption(results: &str, seen: &Observation) -> String {
    let missing = if seen.misread_dispatches > 0 { describe_missing(seen) + "; " } else { String::new() };
    format!(
        "{missing}memory that the host accesses has words that no thread wrote; this may be corruption, not memory order: {results}"
    )
}

fn discarded_share(observation: &Observation) -> f64 {
    if observation.dispatches == 0 {
        return 0.0;
    }
    observation.discarded_dispatches as f64 / observation.dispatches as f64
}

/// Returns true if a device did not execute a dispatch as requested, and no limit of the program explains it.
fn has_unexplained_dispatches(evidence: &Evidence<'_>, seen: &Observation) -> bool {
    // A bound cannot explain surplus invocations, or words that the host reads wrongly.
    seen.not_executed > 0 && evidence.explaining_limit.is_none()
        || seen.outside_grid > 0
        || seen.misread_dispatches > 0
}

/// Describes the dispatches that were not executed as requested.
fn describe_missing(seen: &Observation) -> String {
    let Observation { discarded_dispatches, dispatches, not_executed, .. } = seen;
    let mut text = match discarded_dispatches {
        0 => format!("{dispatches} dispatches"),
        _ => format!(
            "{discarded_dispatches} of {dispatches} dispatches discarded: {not_executed} instances were not \
             executed as requested"
        ),
    };
    if seen.partially_written > 0 {
        text += &format!(", {} of them were written in part", seen.partially_written);
    }
    if seen.outside_grid > 0 {
        text += "; ";
        text += &describe_excess(seen.outside_grid);
    }
    if seen.misread_dispatches > 0 {
        text += "; ";
        text += &describe_misread("dispatches", seen.misread_dispatches);
    }
    text
}

/// The first words of the detail of a verdict on a run in which the driver failed otherwise.
const WEAK_EVIDENCE: &str = "weak evidence";

/// The check that the driver executed the invocations of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceCheck {
    /// Each workgroup has a receipt, so the record was executed even if others were not.
    OwnReceipt,
    /// Only dispatches next to it have receipts, or the host reads other words than the device has.
    NeighbourReceipts,
}

/// Returns the verdict and its explanation for forbidden results, of litmus tests and of users' shaders.
///
/// `proof` names the results. `missing` describes the dispatches that the driver did not execute as
/// requested. It may have failed elsewhere undetected, so the explanation starts with it. Then only
/// individually checked records prove a violation.
pub fn weigh_violation(proof: &str, missing: Option<&str>, check: EvidenceCheck) -> LineVerdict {
    let Some(missing) = missing else { return LineVerdict::new(VerdictWord::Violates, proof.to_owned()) };
    let detail = format!("{WEAK_EVIDENCE} ({missing}): {proof}");
    match check {
        EvidenceCheck::OwnReceipt => LineVerdict::new(VerdictWord::Violates, detail),
        EvidenceCheck::NeighbourReceipts => LineVerdict::inconclusive(Reason::NotExecuted, detail),
    }
}

/// Returns the part of an explanation that marks weak evidence, if it has one.
pub(crate) fn weak_prefix(detail: &str) -> Option<&str> {
    let end = detail.starts_with(WEAK_EVIDENCE).then(|| detail.find("): "))??;
    detail.get(..end + "): ".len())
}

/// Returns true for a violation next to dispatches that the driver did not execute as requested.
pub fn is_weak_violation(line: &RunLine) -> bool {
    let is_weak = line.detail.as_deref().is_some_and(|detail| detail.starts_with(WEAK_EVIDENCE));
    line.verdict == VerdictWord::Violates && is_weak
}

/// Returns the addition to a number of violations if some of them have weak evidence; empty if none has.
pub fn describe_weak_violations(weak: usize, violates: usize) -> String {
    match weak {
        0 => String::new(),
        _ => {
            let share = if weak == violates { String::new() } else { format!("{weak} ") };
            format!(" ({share}with {WEAK_EVIDENCE}: the driver did not execute everything as requested)")
        }
    }
}

/// Describes invocations outside the grid.
pub fn describe_excess(outside_grid: u64) -> String {
    format!("the driver executed more invocations than the dispatch has: {outside_grid} outside the grid")
}

/// Describes dispatches or submissions whose checksums do not match.
pub fn describe_misread(what: &str, count: u64) -> String {
    format!("the host read other words than the device computed checksums over ({what}: {count})")
}

fn format_times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
