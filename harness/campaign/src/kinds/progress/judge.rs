//! Judges a run of a forward-progress test: the progress models that it refutes, and broken claims.
//!
//! Vulkan guarantees no forward progress, so a hang is not a violation by itself. A hang refutes a progress model
//! if two conditions hold: the checker proves that the test ends under the model, and a thread to which the
//! model guarantees progress did not move. It is a violation if an expectation file claims that model. A hang
//! without this evidence may be slowness.

use std::collections::BTreeMap;

use litmus::corpus::PROGRESS_SUITE;
use litmus::{InstructionKind, Race, Test};
use model::progress::{
    CopyLevel, ObservedThread, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressModel,
    satisfies_progress_model,
};
use results::wire::{
    HangRecord, Hashes, LineVerdict, ProgressRun, RunContext, RunLine, RunOutcome, ThreadRecord, ThreadState,
    VerdictWord,
};
use results::{Reason, state::State};
use runner::pool::{Attempt, AttemptEnd, JobReport};
use runner::progress::{Answer, Hang, PlacementObservations, StoppedThread};
use shaders::progress::{ProgressKernel, SeparationLevel};

use super::{ProgressKind, ProgressTestRun};
use crate::kinds::result_line::{line_context, replay_command};
use crate::probe;
use crate::run::{JudgedJob, device_failure, job_ending};

/// The facts about a kernel that the verdict needs.
pub struct KernelFacts {
    /// BLAKE3 hash of its words.
    pub hash: String,
    /// Units of a copy.
    pub units: u32,
    level: SeparationLevel,
}

impl KernelFacts {
    /// Extracts the facts from a kernel.
    pub fn from_kernel(kernel: &ProgressKernel) -> KernelFacts {
        KernelFacts { hash: runner::hash_kernels(&kernel.words), units: kernel.units, level: kernel.level }
    }
}

/// Returns the line of a test without a kernel or an answer of the checker.
pub fn skipped_line(run: &ProgressKind<'_>, cell: &ProgressTestRun, why: &str) -> RunLine {
    build_line(run, cell, LineVerdict::skipped(why), &PlacementObservations::default(), None)
}

/// Judges a worker's report.
pub fn judge_report(
    run: &ProgressKind<'_>,
    cell: &ProgressTestRun,
    report: JobReport<PlacementObservations, Answer>,
    before: Option<Reason>,
) -> JudgedJob {
    let Attempt { end, snapshot, .. } = report.last;
    let ending = job_ending::<ProgressKind<'_>>(&end, before);
    let failure = device_failure(&ending);
    let failed = match &ending {
        Ok(ending) => ending.failure().map(|(reason, why)| LineVerdict::inconclusive(reason, why.to_owned())),
        Err(missing) => {
            return JudgedJob { line: skipped_line(run, cell, missing), failure, validation: Vec::new() };
        }
    };
    let (observations, validation) = match end {
        AttemptEnd::Answered(answer) => (answer.seen, answer.validation),
        AttemptEnd::Failed(_) => (snapshot.unwrap_or_default(), Vec::new()),
        AttemptEnd::NotRun(why) => {
            let fields =
                failed.unwrap_or_else(|| LineVerdict::inconclusive(Reason::Crashed, why.to_string()));
            let line = build_line(run, cell, fields, &PlacementObservations::default(), None);
            return JudgedJob { line, failure, validation: Vec::new() };
        }
    };
    let progress_run = progress_record(run, cell, &observations);
    let fields = verdict_fields(run, cell, &observations, &progress_run, failed);
    JudgedJob { line: build_line(run, cell, fields, &observations, Some(progress_run)), failure, validation }
}

fn verdict_fields(
    run: &ProgressKind<'_>,
    cell: &ProgressTestRun,
    observations: &PlacementObservations,
    progress: &ProgressRun,
    failure: Option<LineVerdict>,
) -> LineVerdict {
    let is_racy =
        matches!(&run.plan.tests[cell.test_index].termination, Ok(verdicts) if verdicts.race == Race::Racy);
    if is_racy {
        let detail = "the program races, so its loops have no progress guarantee".to_owned();
        let exercised = observations.waited > 0;
        return LineVerdict { exercised, ..LineVerdict::new(VerdictWord::Undefined, detail) };
    }
    let detail = describe_run(run, observations, progress);
    // A later failure does not cancel a broken claim.
    if let Some(claim) = run.plan.devices[cell.device_index].claim
        && breaks_claim(run, cell, observations, &claim)
    {
        let detail = format!("{detail}; expected {claim}");
        return LineVerdict { exercised: true, ..LineVerdict::new(VerdictWord::Violates, detail) };
    }
    if let Some(failure) = failure {
        return failure;
    }
    if observations.runs == 0 || observations.not_executed > 0 {
        let why = match observations.outside_grid {
            0 => format!("{} dispatches left records unwritten", observations.not_executed),
            outside => {
                format!(
                    "{} dispatches are not counted; {}",
                    observations.not_executed,
                    results::describe_excess(outside)
                )
            }
        };
        return LineVerdict::inconclusive(Reason::NotExecuted, why);
    }
    if observations.waited == 0 {
        return LineVerdict::inconclusive(Reason::NotExercised, format!("{detail}; no thread had to wait"));
    }
    if !observations.hangs.is_empty() && progress.refutes.is_empty() && !progress.ends_under.is_empty() {
        let why = format!("{detail}, although no thread starved: the device may be slow");
        return LineVerdict { exercised: true, ..LineVerdict::inconclusive(Reason::TimedOut, why) };
    }
    LineVerdict { exercised: true, ..LineVerdict::new(VerdictWord::Conforms, detail) }
}

fn describe_run(
    run: &ProgressKind<'_>,
    observations: &PlacementObservations,
    progress: &ProgressRun,
) -> String {
    let mut text = format!("ended {} of {}", observations.ended, observations.runs);
    let Some(hang) = progress.hangs.first() else {
        return match run.plan.scheduler {
            Some(model) => format!("{text} under {model}"),
            None => text,
        };
    };
    text += &format!(", stuck {}:", observations.hangs.len());
    for (number, thread) in hang.threads.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let place = thread.line.map(|line| format!(" at line {line}")).unwrap_or_default();
        text += &format!("{comma} {} {}{place}", thread.thread, thread.state.name());
    }
    text += &match progress.refutes.as_slice() {
        [] => "; refutes nothing".to_owned(),
        models => format!("; refutes {}", models.join(", ")),
    };
    text
}

fn progress_record(
    run: &ProgressKind<'_>,
    cell: &ProgressTestRun,
    observations: &PlacementObservations,
) -> ProgressRun {
    let item = &run.plan.tests[cell.test_index];
    let tested = &run.plan.devices[cell.device_index];
    let test = &item.loaded.test;
    let terminates =
        item.termination.as_ref().map(|verdicts| verdicts.terminates.as_slice()).unwrap_or_default();
    let terminating = || {
        PROGRESS_GUARANTEES
            .iter()
            .zip(terminates)
            .filter(|(_, ends)| **ends == Some(true))
            .map(|(guarantee, _)| guarantee)
    };
    let level = cell.kernel_facts.as_ref().map_or(SeparationLevel::Workgroups, |kernel| kernel.level);
    let is_refuted = |guarantee: ProgressGuarantee| {
        observations.hangs.iter().any(|hang| {
            breaks_guarantee(test, &ProgressModel::uniform(guarantee), level, observations.copies, hang)
        })
    };
    ProgressRun {
        placement: cell.placement.name().to_owned(),
        level: separation_levels(test),
        copies: observations.copies,
        runs: observations.runs,
        ended: observations.ended,
        stuck: observations.hangs.len() as u32,
        never_started: observations
            .hangs
            .iter()
            .filter(|hang| hang.witnesses.first().is_some_and(|w| w.threads.iter().any(|t| !t.began)))
            .count() as u32,
        ends_under: terminating().map(|(name, _)| (*name).to_owned()).collect(),
        refutes: terminating()
            .filter(|(_, guarantee)| is_refuted(*guarantee))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        claim: tested.claim.map(|claim| claim.to_string()),
        scheduler: run
            .plan
            .scheduler
            .filter(|_| probe::is_simulated(&tested.target.listed))
            .map(|model| model.to_string()),
        hangs: observations.hangs.iter().filter_map(|hang| hang_record(test, hang)).collect(),
    }
}

/// Returns the levels of the hierarchy at which the threads of a test are separated.
fn separation_levels(test: &Test) -> String {
    let places: Vec<litmus::Placement> =
        test.threads.iter().filter_map(|thread| device_placement(thread.place)).collect();
    let has_pair = |same: fn(&litmus::Placement, &litmus::Placement) -> bool,
                    part: fn(&litmus::Placement, &litmus::Placement) -> bool| {
        places.iter().any(|left| places.iter().any(|right| same(left, right) && part(left, right)))
    };
    let mut levels = Vec::new();
    if has_pair(|_, _| true, |left, right| left.workgroup != right.workgroup) {
        levels.push("qf");
    }
    if has_pair(
        |left, right| left.workgroup == right.workgroup,
        |left, right| left.subgroup != right.subgroup,
    ) {
        levels.push("wg");
    }
    let mut sorted = places.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair.first() == pair.last()) {
        levels.push("sg");
    }
    levels.join("+")
}

fn device_placement(place: litmus::ThreadPlace) -> Option<litmus::Placement> {
    match place {
        litmus::ThreadPlace::Device(placement) => Some(placement),
        litmus::ThreadPlace::Host => None,
    }
}

/// Returns the control barrier that a thread has reached.
fn reached_barrier<'t>(
    test: &'t Test,
    thread: usize,
    stopped: &StoppedThread,
) -> Option<&'t litmus::ControlBarrier> {
    let instructions = &test.threads.get(thread)?.instructions;
    match &instructions.get(stopped.place? as usize)?.kind {
        InstructionKind::ControlBarrier(barrier) if !stopped.ended && !stopped.moved => Some(barrier),
        _ => None,
    }
}

/// Returns true if a thread waits in a control barrier that another thread has not reached.
fn waits_at_barrier(test: &Test, thread: usize, threads: &[StoppedThread]) -> bool {
    let barrier_of =
        |number: usize| threads.get(number).and_then(|stood| reached_barrier(test, number, stood));
    let Some(own_barrier) = barrier_of(thread) else { return false };
    let placement_of =
        |number: usize| test.threads.get(number).and_then(|thread| device_placement(thread.place));
    let shares_barrier = |number: usize| match (placement_of(thread), placement_of(number)) {
        (Some(left), Some(right)) if own_barrier.execution_scope == litmus::Scope::Subgroup => left == right,
        (Some(left), Some(right)) => left.workgroup == right.workgroup,
        _ => false,
    };
    (0..threads.len()).any(|other| {
        shares_barrier(other) && barrier_of(other).is_none_or(|there| there.id != own_barrier.id)
    })
}

fn observed_threads(test: &Test, threads: &[StoppedThread]) -> Vec<ObservedThread> {
    let observe = |(number, thread): (usize, &StoppedThread)| ObservedThread {
        started: thread.began,
        ended: thread.ended,
        is_waiting: waits_at_barrier(test, number, threads),
        moved: thread.moved,
    };
    threads.iter().enumerate().map(observe).collect()
}

/// Returns true if a hang breaks a guarantee of a model.
///
/// With several copies, the lowest unfinished thread is the lowest of the whole dispatch. A guarantee for it
/// is checked there and not in each copy.
fn breaks_guarantee(
    test: &Test,
    model: &ProgressModel,
    level: SeparationLevel,
    copies: u32,
    hang: &Hang,
) -> bool {
    let mut adjusted_model = *model;
    let mut copy_level = None;
    if copies > 1 {
        copy_level = Some(match level {
            SeparationLevel::Workgroups => CopyLevel::Workgroups,
            SeparationLevel::Subgroups => CopyLevel::Subgroups,
            SeparationLevel::Invocations => CopyLevel::Invocations,
        });
        let spread = match level {
            SeparationLevel::Workgroups => &mut adjusted_model.queue_family,
            SeparationLevel::Subgroups => &mut adjusted_model.workgroup,
            SeparationLevel::Invocations => &mut adjusted_model.subgroup,
        };
        let guarantees_lowest = matches!(spread, ProgressGuarantee::Hsa | ProgressGuarantee::HsaObe);
        // Only the lowest thread has a guarantee, and another thread of the dispatch may have moved.
        let guarantees_only_lowest = matches!(spread, ProgressGuarantee::Hsa | ProgressGuarantee::Unfair);
        if *spread == ProgressGuarantee::HsaObe {
            *spread = ProgressGuarantee::Obe;
        }
        let is_starved = |lowest: &runner::progress::LowestUnfinishedThread| {
            !lowest.stood.moved && reached_barrier(test, lowest.thread as usize, &lowest.stood).is_none()
        };
        if guarantees_lowest && hang.lowest.as_ref().is_some_and(is_starved) {
            return true;
        }
        if guarantees_only_lowest {
            return false;
        }
    }
    hang.witnesses.iter().any(|witness| {
        !satisfies_progress_model(
            test,
            &adjusted_model,
            &observed_threads(test, &witness.threads),
            copy_level,
        )
    })
}

fn breaks_claim(
    run: &ProgressKind<'_>,
    cell: &ProgressTestRun,
    observations: &PlacementObservations,
    claim: &ProgressModel,
) -> bool {
    let tested = &run.plan.devices[cell.device_index];
    let terminates = tested.terminates_under_claim.get(cell.test_index).copied().flatten() == Some(true);
    let level = cell.kernel_facts.as_ref().map_or(SeparationLevel::Workgroups, |kernel| kernel.level);
    let test = &run.plan.tests[cell.test_index].loaded.test;
    terminates
        && observations
            .hangs
            .iter()
            .any(|hang| breaks_guarantee(test, claim, level, observations.copies, hang))
}

/// Returns the record of the first copy of a hang.
fn hang_record(test: &Test, hang: &Hang) -> Option<HangRecord> {
    let witness = hang.witnesses.first()?;
    let thread = |(number, stopped): (usize, &StoppedThread)| {
        let test_thread = test.threads.get(number)?;
        let place = stopped.place.and_then(|place| test_thread.instructions.get(place as usize));
        Some(ThreadRecord {
            thread: format!("P{}", test_thread.number),
            state: match stopped {
                _ if stopped.ended => ThreadState::Ended,
                _ if !stopped.began => ThreadState::NeverStarted,
                _ if waits_at_barrier(test, number, &witness.threads) => ThreadState::Barrier,
                _ if stopped.moved => ThreadState::Waiting,
                _ => ThreadState::Stopped,
            },
            order: stopped.order,
            turns: stopped.turns,
            line: place.filter(|_| stopped.began).map(|instruction| instruction.span.line),
        })
    };
    Some(HangRecord {
        seconds: hang.seconds,
        copy: witness.copy,
        threads: witness.threads.iter().enumerate().filter_map(thread).collect(),
    })
}

/// Counts the dispatches by the set of threads that ended.
fn count_outcomes(test: &Test, observations: &PlacementObservations) -> Vec<RunOutcome> {
    let mut counts: BTreeMap<Vec<bool>, u64> = BTreeMap::new();
    let all = vec![true; test.threads.len()];
    *counts.entry(all).or_default() += u64::from(observations.ended);
    for witness in observations.hangs.iter().filter_map(|hang| hang.witnesses.first()) {
        *counts.entry(witness.threads.iter().map(|thread| thread.ended).collect()).or_default() += 1;
    }
    counts
        .into_iter()
        .rev()
        .map(|(ended, count)| {
            let mut state = State::new();
            for (thread, ended) in test.threads.iter().zip(ended) {
                state.insert(format!("P{}:ended", thread.number), u64::from(ended).into());
            }
            RunOutcome { state, count, allowed: true, ..RunOutcome::default() }
        })
        .collect()
}

fn build_line(
    run: &ProgressKind<'_>,
    cell: &ProgressTestRun,
    fields: LineVerdict,
    observations: &PlacementObservations,
    progress: Option<ProgressRun>,
) -> RunLine {
    let item = &run.plan.tests[cell.test_index];
    let tested = &run.plan.devices[cell.device_index];
    let test = &item.loaded.test;
    let base_argument = item.loaded.source.argument.split('@').next().unwrap_or_default();
    let argument = format!("{base_argument}@{}", cell.placement.name());
    let scheduler = run.plan.scheduler.map(|model| model.to_string());
    let replay = replay_command(
        &[&argument, "--suite", PROGRESS_SUITE],
        &tested.target,
        run.seed,
        run.options.instances,
        &[("progress", scheduler.as_deref())],
    );
    let context = line_context(&tested.target, &run.plan.chosen, run.seed, replay);
    let hashes = Hashes {
        test: item.hash.clone(),
        kernel: cell.kernel_facts.as_ref().map(|kernel| kernel.hash.clone()).unwrap_or_default(),
        ..context.hashes.clone()
    };
    let context = RunContext {
        id: cell.id.clone(),
        name: test.name.clone(),
        stress: run.plan.stress_text(),
        hashes,
        ..context
    };
    let is_skipped = fields.verdict == VerdictWord::Skipped;
    RunLine {
        race: match &item.termination {
            Ok(verdicts) if !is_skipped && verdicts.race != Race::Unknown => Some(verdicts.race.into()),
            _ => None,
        },
        instances: u64::from(observations.runs),
        not_executed: u64::from(observations.not_executed),
        seconds: observations.seconds,
        outcomes: if is_skipped { Vec::new() } else { count_outcomes(test, observations) },
        progress,
        question: test.question.as_ref().map(|question| question.to_text(test)),
        ..RunLine::of_run(context).with_verdict(fields)
    }
}
