//! Judges a run of a forward-progress test: the progress models that it refutes, and broken claims.
//!
//! Vulkan guarantees no forward progress, so a hang is not a violation by itself. A hang refutes a progress model
//! if two conditions hold: the checker proves that the test ends under the model, and a thread to which the
//! model guarantees progress did not move. It is a violation if an expectation file claims that model. A hang
//! without this evidence may be slowness.

use std::collections::BTreeMap;

use litmus::{InstructionKind, Race, Test};
use model::progress::{
    CopyLevel, ObservedThread, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressModel, keeps_progress_model,
};
use results::wire::{
    HangRecord, Hashes, ProgressRun, RUN_SCHEMA, RunLine, RunOutcome, ThreadRecord, ThreadState, VerdictWord,
};
use results::{Ending, Reason, state::State};
use runner::pool::{Attempt, AttemptEnd, JobReport};
use runner::progress::{Answer, Hang, PlacementObservations, StoppedThread};
use runner::wire::IncompleteReason;
use shaders::progress::{ProgressKernel, SeparationLevel};

use super::{ProgressCell, ProgressKind};
use crate::kinds::{copyable, driver_record, quoted};
use crate::probe;
use crate::run::{JudgedJob, ending, failure_of};

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
    pub fn of(kernel: &ProgressKernel) -> KernelFacts {
        KernelFacts { hash: runner::hash_kernels(&kernel.words), units: kernel.units, level: kernel.level }
    }
}

/// The verdict fields of a line.
struct VerdictFields {
    verdict: VerdictWord,
    reason: Option<String>,
    detail: Option<String>,
    exercised: bool,
}

impl VerdictFields {
    fn inconclusive(reason: Reason, detail: String) -> VerdictFields {
        VerdictFields {
            verdict: VerdictWord::Inconclusive,
            reason: Some(reason.word().to_owned()),
            detail: Some(detail),
            exercised: false,
        }
    }
}

/// Returns the line of a test without a kernel or an answer of the checker.
pub fn skipped(whole: &ProgressKind<'_>, cell: &ProgressCell, why: &str) -> RunLine {
    let says = VerdictFields {
        verdict: VerdictWord::Skipped,
        reason: Some(why.to_owned()),
        detail: Some(why.to_owned()),
        exercised: false,
    };
    line(whole, cell, says, &PlacementObservations::default(), None)
}

/// Judges a worker's report.
pub fn judged(
    whole: &ProgressKind<'_>,
    cell: &ProgressCell,
    report: JobReport<PlacementObservations, Answer>,
    before: Option<Reason>,
) -> JudgedJob {
    let Attempt { end, snapshot, .. } = report.last;
    let ending = ending::<ProgressKind<'_>>(&end, before);
    let failure = failure_of(&ending);
    let says_of = |ending: &Ending| match ending {
        Ending::Finished => None,
        Ending::NullDevice => Some((Reason::NullDevice, IncompleteReason::NullDevice.to_string())),
        Ending::TimedOut(why) => Some((Reason::TimedOut, why.clone())),
        Ending::NoTime(why) => Some((Reason::NoTime, why.clone())),
        Ending::Crashed(why) => Some((Reason::Crashed, why.clone())),
        Ending::DeviceLost(why) => Some((Reason::DeviceLost, why.clone())),
        Ending::CountsDisagree(why) => Some((Reason::CountsDisagree, why.clone())),
    };
    let failed = match &ending {
        Ok(ending) => says_of(ending).map(|(reason, why)| VerdictFields::inconclusive(reason, why)),
        Err(missing) => {
            return JudgedJob { line: skipped(whole, cell, missing), failure, validation: Vec::new() };
        }
    };
    let (seen, validation) = match end {
        AttemptEnd::Answered(answer) => (answer.seen, answer.validation),
        AttemptEnd::Failed(_) => (snapshot.unwrap_or_default(), Vec::new()),
        AttemptEnd::NotRun(why) => {
            let says =
                failed.unwrap_or_else(|| VerdictFields::inconclusive(Reason::Crashed, why.to_string()));
            let line = line(whole, cell, says, &PlacementObservations::default(), None);
            return JudgedJob { line, failure, validation: Vec::new() };
        }
    };
    let progress = progress(whole, cell, &seen);
    let says = says(whole, cell, &seen, &progress, failed);
    JudgedJob { line: line(whole, cell, says, &seen, Some(progress)), failure, validation }
}

fn says(
    whole: &ProgressKind<'_>,
    cell: &ProgressCell,
    seen: &PlacementObservations,
    progress: &ProgressRun,
    failure: Option<VerdictFields>,
) -> VerdictFields {
    let racy = matches!(&whole.plan.items[cell.item].verdicts, Ok(verdicts) if verdicts.race == Race::Racy);
    if racy {
        return VerdictFields {
            verdict: VerdictWord::Undefined,
            reason: None,
            detail: Some("the program races, so its loops have no progress guarantee".to_owned()),
            exercised: seen.waited > 0,
        };
    }
    let detail = describe_run(whole, seen, progress);
    // A later failure does not cancel a broken claim.
    if let Some(claim) = whole.plan.devices[cell.device].claim
        && breaks_claim(whole, cell, seen, &claim)
    {
        return VerdictFields {
            verdict: VerdictWord::Violates,
            reason: None,
            detail: Some(format!("{detail}; expected {claim}")),
            exercised: true,
        };
    }
    if let Some(failure) = failure {
        return failure;
    }
    if seen.runs == 0 || seen.not_executed > 0 {
        let why = match seen.outside_grid {
            0 => format!("{} dispatches left records unwritten", seen.not_executed),
            outside => {
                format!(
                    "{} dispatches are not counted; {}",
                    seen.not_executed,
                    results::describe_excess(outside)
                )
            }
        };
        return VerdictFields::inconclusive(Reason::NotExecuted, why);
    }
    if seen.waited == 0 {
        return VerdictFields::inconclusive(Reason::NotExercised, format!("{detail}; no thread had to wait"));
    }
    if !seen.hangs.is_empty() && progress.refutes.is_empty() && !progress.ends_under.is_empty() {
        let why = format!("{detail}, although no thread starved: the device may be slow");
        return VerdictFields { exercised: true, ..VerdictFields::inconclusive(Reason::TimedOut, why) };
    }
    VerdictFields { verdict: VerdictWord::Conforms, reason: None, detail: Some(detail), exercised: true }
}

/// Describes the observations.
fn describe_run(whole: &ProgressKind<'_>, seen: &PlacementObservations, progress: &ProgressRun) -> String {
    let mut text = format!("ended {} of {}", seen.ended, seen.runs);
    let Some(hang) = progress.hangs.first() else {
        return match whole.plan.scheduler {
            Some(model) => format!("{text} under {model}"),
            None => text,
        };
    };
    text += &format!(", stuck {}:", seen.hangs.len());
    for (number, thread) in hang.threads.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let place = thread.line.map(|line| format!(" at line {line}")).unwrap_or_default();
        text += &format!("{comma} {} {}{place}", thread.thread, thread.state.text());
    }
    text += &match progress.refutes.as_slice() {
        [] => "; refutes nothing".to_owned(),
        models => format!("; refutes {}", models.join(", ")),
    };
    text
}

fn progress(whole: &ProgressKind<'_>, cell: &ProgressCell, seen: &PlacementObservations) -> ProgressRun {
    let item = &whole.plan.items[cell.item];
    let tested = &whole.plan.devices[cell.device];
    let test = &item.loaded.test;
    let ends = item.verdicts.as_ref().map(|verdicts| verdicts.ends.as_slice()).unwrap_or_default();
    let ended = || {
        PROGRESS_GUARANTEES
            .iter()
            .zip(ends)
            .filter(|(_, ends)| **ends == Some(true))
            .map(|(promise, _)| promise)
    };
    let level = cell.kernel.as_ref().map_or(SeparationLevel::Workgroups, |kernel| kernel.level);
    let refuted = |promise: ProgressGuarantee| {
        seen.hangs
            .iter()
            .any(|hang| breaks_guarantee(test, &ProgressModel::uniform(promise), level, seen.copies, hang))
    };
    ProgressRun {
        placement: cell.placement.name().to_owned(),
        level: separation_levels(test),
        copies: seen.copies,
        runs: seen.runs,
        ended: seen.ended,
        stuck: seen.hangs.len() as u32,
        never_started: seen
            .hangs
            .iter()
            .filter(|hang| hang.witnesses.first().is_some_and(|w| w.threads.iter().any(|t| !t.began)))
            .count() as u32,
        ends_under: ended().map(|(name, _)| (*name).to_owned()).collect(),
        refutes: ended()
            .filter(|(_, promise)| refuted(*promise))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        claim: tested.claim.map(|claim| claim.to_string()),
        scheduler: whole
            .plan
            .scheduler
            .filter(|_| probe::is_sim(&tested.target.listed))
            .map(|model| model.to_string()),
        hangs: seen.hangs.iter().filter_map(|hang| hang_record(test, hang)).collect(),
    }
}

/// Returns the levels of the hierarchy at which the threads of a test are separated.
fn separation_levels(test: &Test) -> String {
    let places: Vec<litmus::Placement> =
        test.threads.iter().filter_map(|thread| placement(thread.place)).collect();
    let differ = |same: fn(&litmus::Placement, &litmus::Placement) -> bool,
                  part: fn(&litmus::Placement, &litmus::Placement) -> bool| {
        places.iter().any(|left| places.iter().any(|right| same(left, right) && part(left, right)))
    };
    let mut levels = Vec::new();
    if differ(|_, _| true, |left, right| left.workgroup != right.workgroup) {
        levels.push("qf");
    }
    if differ(|left, right| left.workgroup == right.workgroup, |left, right| left.subgroup != right.subgroup)
    {
        levels.push("wg");
    }
    let mut sorted = places.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair.first() == pair.last()) {
        levels.push("sg");
    }
    levels.join("+")
}

fn placement(place: litmus::ThreadPlace) -> Option<litmus::Placement> {
    match place {
        litmus::ThreadPlace::Device(placement) => Some(placement),
        litmus::ThreadPlace::Host => None,
    }
}

/// Returns the control barrier that a thread has reached.
fn reached_barrier<'t>(
    test: &'t Test,
    thread: usize,
    stood: &StoppedThread,
) -> Option<&'t litmus::ControlBarrier> {
    let instructions = &test.threads.get(thread)?.instructions;
    match &instructions.get(stood.place? as usize)?.kind {
        InstructionKind::ControlBarrier(barrier) if !stood.ended && !stood.moved => Some(barrier),
        _ => None,
    }
}

/// Returns true if a thread waits in a control barrier that another thread has not reached.
fn waits_at_barrier(test: &Test, thread: usize, threads: &[StoppedThread]) -> bool {
    let at = |number: usize| threads.get(number).and_then(|stood| reached_barrier(test, number, stood));
    let Some(own) = at(thread) else { return false };
    let place = |number: usize| test.threads.get(number).and_then(|thread| placement(thread.place));
    let meets = |number: usize| match (place(thread), place(number)) {
        (Some(left), Some(right)) if own.execution_scope == litmus::Scope::Subgroup => left == right,
        (Some(left), Some(right)) => left.workgroup == right.workgroup,
        _ => false,
    };
    (0..threads.len()).any(|other| meets(other) && at(other).is_none_or(|there| there.id != own.id))
}

fn watched(test: &Test, threads: &[StoppedThread]) -> Vec<ObservedThread> {
    let one = |(number, thread): (usize, &StoppedThread)| ObservedThread {
        started: thread.began,
        ended: thread.ended,
        waits: waits_at_barrier(test, number, threads),
        moved: thread.moved,
    };
    threads.iter().enumerate().map(one).collect()
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
    let mut own = *model;
    let mut beside = None;
    if copies > 1 {
        beside = Some(match level {
            SeparationLevel::Workgroups => CopyLevel::Workgroups,
            SeparationLevel::Subgroups => CopyLevel::Subgroups,
            SeparationLevel::Invocations => CopyLevel::Invocations,
        });
        let spread = match level {
            SeparationLevel::Workgroups => &mut own.queue_family,
            SeparationLevel::Subgroups => &mut own.workgroup,
            SeparationLevel::Invocations => &mut own.subgroup,
        };
        let owes_lowest = matches!(spread, ProgressGuarantee::Hsa | ProgressGuarantee::HsaObe);
        // Only the lowest thread has a guarantee, and another thread of the dispatch may have moved.
        let owes_nobody_else = matches!(spread, ProgressGuarantee::Hsa | ProgressGuarantee::Unfair);
        if *spread == ProgressGuarantee::HsaObe {
            *spread = ProgressGuarantee::Obe;
        }
        let left_out = |lowest: &runner::progress::LowestUnfinishedThread| {
            !lowest.stood.moved && reached_barrier(test, lowest.thread as usize, &lowest.stood).is_none()
        };
        if owes_lowest && hang.lowest.as_ref().is_some_and(left_out) {
            return true;
        }
        if owes_nobody_else {
            return false;
        }
    }
    hang.witnesses
        .iter()
        .any(|witness| !keeps_progress_model(test, &own, &watched(test, &witness.threads), beside))
}

fn breaks_claim(
    whole: &ProgressKind<'_>,
    cell: &ProgressCell,
    seen: &PlacementObservations,
    claim: &ProgressModel,
) -> bool {
    let tested = &whole.plan.devices[cell.device];
    let ends = tested.ends_under_claim.get(cell.item).copied().flatten() == Some(true);
    let level = cell.kernel.as_ref().map_or(SeparationLevel::Workgroups, |kernel| kernel.level);
    let test = &whole.plan.items[cell.item].loaded.test;
    ends && seen.hangs.iter().any(|hang| breaks_guarantee(test, claim, level, seen.copies, hang))
}

/// Returns the record of the first copy of a hang.
fn hang_record(test: &Test, hang: &Hang) -> Option<HangRecord> {
    let witness = hang.witnesses.first()?;
    let thread = |(number, stood): (usize, &StoppedThread)| {
        let of = test.threads.get(number)?;
        let place = stood.place.and_then(|place| of.instructions.get(place as usize));
        Some(ThreadRecord {
            thread: format!("P{}", of.number),
            state: match stood {
                _ if stood.ended => ThreadState::Ended,
                _ if !stood.began => ThreadState::NeverStarted,
                _ if waits_at_barrier(test, number, &witness.threads) => ThreadState::Barrier,
                _ if stood.moved => ThreadState::Waiting,
                _ => ThreadState::Stopped,
            },
            order: stood.order,
            turns: stood.turns,
            line: place.filter(|_| stood.began).map(|instruction| instruction.span.line),
        })
    };
    Some(HangRecord {
        seconds: hang.seconds,
        copy: witness.copy,
        threads: witness.threads.iter().enumerate().filter_map(thread).collect(),
    })
}

/// Counts the dispatches by the set of threads that ended.
fn outcomes(test: &Test, seen: &PlacementObservations) -> Vec<RunOutcome> {
    let mut counts: BTreeMap<Vec<bool>, u64> = BTreeMap::new();
    let all = vec![true; test.threads.len()];
    *counts.entry(all).or_default() += u64::from(seen.ended);
    for witness in seen.hangs.iter().filter_map(|hang| hang.witnesses.first()) {
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
            RunOutcome {
                state,
                count,
                batches: None,
                allowed: true,
                weak: false,
                filtered: false,
                thin_air: false,
                witness: None,
                hsa: None,
            }
        })
        .collect()
}

fn line(
    whole: &ProgressKind<'_>,
    cell: &ProgressCell,
    says: VerdictFields,
    seen: &PlacementObservations,
    progress: Option<ProgressRun>,
) -> RunLine {
    let item = &whole.plan.items[cell.item];
    let tested = &whole.plan.devices[cell.device];
    let test = &item.loaded.test;
    let ProgressKind { seed, .. } = *whole;
    let id = cell.id.clone();
    let bare = item.loaded.source.argument.split('@').next().unwrap_or_default();
    let argument = format!("{bare}@{}", cell.placement.name());
    let mut replay = format!("vk-litmus run {} --suite progress", quoted(&argument));
    replay += &format!(" --device {} --seed {seed}", quoted(tested.target.device()));
    if let Some(instances) = whole.options.instances {
        replay += &format!(" --instances {instances}");
    }
    if let Some(model) = whole.plan.scheduler {
        replay += &format!(" --progress {model}");
    }
    RunLine {
        schema: RUN_SCHEMA.to_owned(),
        id,
        name: test.name.clone(),
        device: tested.target.name.clone(),
        model: whole.plan.chosen.model.name().to_owned(),
        verdict: says.verdict,
        race: match &item.verdicts {
            Ok(verdicts) if says.verdict != VerdictWord::Skipped && verdicts.race != Race::Unknown => {
                Some(verdicts.race.into())
            }
            _ => None,
        },
        reason: says.reason,
        detail: says.detail,
        exercised: says.exercised,
        instances: u64::from(seen.runs),
        interleaved: 0,
        repeated: 0,
        not_executed: u64::from(seen.not_executed),
        unresolved: 0,
        seconds: seen.seconds,
        batches: None,
        outcomes: if says.verdict == VerdictWord::Skipped { Vec::new() } else { outcomes(test, seen) },
        unexpected: Vec::new(),
        seed,
        stress: whole.plan.stress(),
        replay: copyable(replay),
        memory: None,
        counted_by_host: None,
        spread: None,
        drift: None,
        progress,
        shader: None,
        hashes: Hashes {
            test: item.hash.clone(),
            model: whole.plan.chosen.hash.clone(),
            kernel: cell.kernel.as_ref().map(|kernel| kernel.hash.clone()).unwrap_or_default(),
        },
        question: test.question.as_ref().map(|question| question.to_text(test)),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        driver: Some(driver_record(&tested.target.listed.identity)),
        hsa: None,
        mutants: Vec::new(),
    }
}
