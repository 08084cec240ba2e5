//! The meeting of a prediction and an observation: one verdict a test, device and model.
//!
//! One direction of proof: an outcome that was seen and is not allowed proves a violation, whatever happened later; an
//! allowed outcome that was not seen proves nothing.

use litmus::{Observation, Outcome, Overlap, PredictedOutcome, Prediction, Race, Test};

use crate::state;
use crate::statistics::{Drift, drift};
use crate::wire::{RaceWord, RunLine, VerdictWord};

/// Interleaved instances, or early reads, that make a test count as exercised.
pub const EXERCISED_THRESHOLD: u64 = 100;

/// Above this share of discarded dispatches, nothing is said about the rest, be it known why they were.
pub const DISCARDED_SHARE_LIMIT: f64 = 0.01;

/// Everything that a verdict follows from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The test.
    pub test: &'a Test,
    /// What the model says, without regard to the test's filter.
    pub prediction: &'a Prediction,
    /// What the device showed.
    pub observation: &'a Observation,
    /// How the run ended.
    pub ending: &'a Ending,
    /// What the device showed of the test without its control barriers, where it has some, or of the test with early reads.
    pub twin: Option<Twin<'a>>,
    /// The bound of our own that may keep instances from being executed, where there is one. Without one a device that leaves an
    /// instance out did not do what it was asked.
    pub bound: Option<&'a str>,
    /// The device runs the invocations of the test's stage one after another, as far as a probe has seen.
    pub serial_stage: bool,
}

/// What a device showed of a test with one synchronization relaxed.
#[derive(Clone, Copy, Debug)]
pub struct Twin<'a> {
    /// What was seen. Without control barriers, its outcomes list the same observables as the original's.
    pub observation: &'a Observation,
    /// Early reads: reads before a control barrier that saw what another thread wrote before it; or, where the twin is the
    /// test with reads before and after its threads, instances that no serial order of whole threads produces.
    pub early_reads: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The budget was used up.
    Finished,
    /// The deadline passed: the worker process was ended.
    TimedOut(String),
    /// The time was over before the test began.
    NoTime(String),
    /// The worker process ended without an answer.
    Crashed(String),
    /// The driver gave up the device.
    DeviceLost(String),
    /// The device answers, but executes nothing.
    NullDevice,
}

/// The verdict on a test, a device and a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Exercised, and nothing forbidden was seen.
    Conforms,
    /// A forbidden outcome of a race-free test was seen, or values that no candidate execution produces.
    Violates,
    /// The program races: recorded, never judged.
    Undefined,
    /// Nothing can be said, for this reason.
    Inconclusive(Reason),
    /// Not run: [`Judgement::detail`] names the missing feature, limit or rule.
    Skipped,
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Too few instances in which threads overlapped.
    NotExercised,
    /// The run, or the prediction, did not end in time.
    TimedOut,
    /// The time was over before the test began.
    NoTime,
    /// The worker process ended without an answer.
    Crashed,
    /// The driver gave up the device.
    DeviceLost,
    /// Instances were not executed, and no bound of our own explains that; or more than [`DISCARDED_SHARE_LIMIT`] of the
    /// dispatches left some, or nothing ran at all.
    NotExecuted,
    /// Every instance ran into the bound of a spin loop.
    NoResolvedInstance,
    /// The device executes nothing.
    NullDevice,
    /// What the model allows is not known.
    NotJudged,
    /// There is no verdict: the run ended before it, or the record is lost.
    Missing,
}

impl Reason {
    /// The published word.
    pub fn word(self) -> &'static str {
        match self {
            Reason::NotExercised => "not exercised",
            Reason::TimedOut => "timed out",
            Reason::NoTime => "no time",
            Reason::Crashed => "crashed",
            Reason::DeviceLost => "device lost",
            Reason::NotExecuted => "not executed",
            Reason::NoResolvedInstance => "no resolved instance",
            Reason::NullDevice => "null device",
            Reason::NotJudged => "not judged",
            Reason::Missing => "missing",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Particulars for people: the witnesses, how the run ended, what is missing.
    pub detail: Option<String>,
    /// Whether the program has no defined outcomes; unknown where the prediction was cut short, nothing where there is none.
    pub race: Option<Race>,
    /// Whether the run could have shown what it looked for.
    pub exercised: bool,
    /// All instances accounted for: counts of rows and unexpected ones, and unresolved instances.
    pub instances: u64,
    /// Instances whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
    /// Instances that left no trace; their dispatches count nowhere else.
    pub not_executed: u64,
    /// Instances that ran into the bound of a spin loop, or whose outcome was past those that are told apart.
    pub unresolved: u64,
    /// Invocations that ran once more than they had to, in stages that may repeat them.
    pub repeated: u64,
    /// Wall-clock seconds of all dispatches.
    pub seconds: f64,
    /// Independent batches, on a device where single instances are not independent.
    pub batches: Option<u64>,
    /// Every outcome of the prediction, seen or not, in the order of outcomes.
    pub rows: Vec<Row>,
    /// What was seen and stands in no row.
    pub unexpected: Vec<Unexpected>,
    /// How rates drifted in the course of the run, where it was long enough to say.
    pub drift: Option<Drift>,
}

/// An outcome of the prediction with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The outcome.
    pub outcome: Outcome,
    /// How often it was seen.
    pub count: u64,
    /// How many independent batches showed it, on a device that has them.
    pub batches: Option<u64>,
    /// What the model says of it.
    pub says: PredictedOutcome,
}

/// Values that no candidate execution produces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// A whole outcome that is none of the prediction's (values in the order of the observables), or the raw result
    /// words of an instance that was written in part.
    pub raw: Vec<u64>,
    /// How often it was seen.
    pub count: u64,
}

impl Judgement {
    /// The judgement on a test that was not run, by the name of the missing feature, limit or rule.
    pub fn skipped(missing: impl Into<String>) -> Judgement {
        Judgement {
            verdict: Verdict::Skipped,
            detail: Some(missing.into()),
            race: None,
            exercised: false,
            instances: 0,
            interleaved: 0,
            not_executed: 0,
            unresolved: 0,
            repeated: 0,
            seconds: 0.0,
            batches: None,
            rows: Vec::new(),
            unexpected: Vec::new(),
            drift: None,
        }
    }
}

/// Judges what a device showed of a test by what a model says of it.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let &Evidence { prediction, observation, .. } = evidence;
    let rows: Vec<Row> = prediction
        .outcomes
        .iter()
        .map(|(outcome, says)| Row {
            outcome: outcome.clone(),
            count: observation.histogram.counts.get(outcome).copied().unwrap_or_default(),
            batches: observation
                .batches
                .as_ref()
                .map(|batches| batches.by_outcome.get(outcome).copied().unwrap_or_default()),
            says: *says,
        })
        .collect();
    let unpredicted = observation
        .histogram
        .counts
        .iter()
        .filter(|(outcome, _)| !prediction.outcomes.contains_key(outcome))
        .map(|(outcome, count)| Unexpected { raw: outcome.0.iter().map(|v| v.0).collect(), count: *count });
    let partial = observation.unexpected.iter().map(|(words, count)| Unexpected {
        raw: words.iter().map(|w| u64::from(*w)).collect(),
        count: *count,
    });
    let unexpected: Vec<Unexpected> = unpredicted.chain(partial).filter(|u| u.count > 0).collect();
    let interleaved = rows.iter().filter(|row| !row.says.serial).map(|row| row.count).sum();
    let mut judgement = Judgement {
        verdict: Verdict::Conforms,
        detail: None,
        race: Some(match prediction.race {
            Race::Racy if prediction.is_undefined() => Race::Racy,
            Race::Free | Race::Racy if prediction.complete => Race::Free,
            Race::Free | Race::Racy | Race::Unknown => Race::Unknown,
        }),
        exercised: exercised(evidence, interleaved) && !nothing_kept(&rows),
        instances: observation.instances(),
        interleaved,
        not_executed: observation.not_executed,
        unresolved: observation.unresolved + observation.not_told_apart,
        repeated: observation.repeated,
        seconds: observation.seconds,
        batches: observation.batches.as_ref().map(|batches| batches.total),
        rows,
        unexpected,
        drift: drift(&observation.stretches),
    };
    let (verdict, detail) = verdict(evidence, &judgement);
    judgement.verdict = verdict;
    judgement.detail = detail;
    if judgement.not_executed > 0 && verdict != Verdict::Inconclusive(Reason::NotExecuted) {
        let why = evidence.bound.map(|bound| format!(" ({bound})")).unwrap_or_default();
        let told = format!("{} instances were not executed{why}", judgement.not_executed);
        judgement.detail = Some(match judgement.detail {
            Some(detail) => format!("{detail}; {told}"),
            None => told,
        });
    }
    judgement
}

/// Whether the test's filter took every instance away: what it asks of the others was then asked of none.
fn nothing_kept(rows: &[Row]) -> bool {
    let filters = rows.iter().any(|row| row.says.filtered);
    filters && rows.iter().all(|row| row.says.filtered || row.count == 0)
}

/// Whether the run could have shown what it looked for.
fn exercised(evidence: &Evidence<'_>, interleaved: u64) -> bool {
    let &Evidence { test, prediction, observation, twin, .. } = evidence;
    match test.overlap() {
        Overlap::Possible => {
            let early_reads = twin.map_or(0, |twin| twin.early_reads);
            interleaved.max(early_reads) >= EXERCISED_THRESHOLD
        }
        // No serial order of whole threads passes a control barrier, so that interleaved instances prove nothing here.
        Overlap::ControlBarrier => twin.is_some_and(|twin| {
            twin.early_reads >= EXERCISED_THRESHOLD
                || prediction.complete
                    && twin.observation.histogram.counts.iter().any(|(outcome, count)| {
                        *count > 0 && prediction.outcomes.get(outcome).is_some_and(|says| !says.allowed)
                    })
        }),
        Overlap::Ordered => observation.instances() > 0 && observation.not_executed == 0,
    }
}

fn verdict(evidence: &Evidence<'_>, judgement: &Judgement) -> (Verdict, Option<String>) {
    let &Evidence { test, prediction, observation, ending, .. } = evidence;
    let race = prediction.race;
    let inconclusive = |reason, detail: String| (Verdict::Inconclusive(reason), Some(detail));

    let (ended, how) = match ending {
        Ending::NullDevice => {
            return inconclusive(Reason::NullDevice, "the device executes nothing".to_owned());
        }
        Ending::Finished => (None, None),
        Ending::TimedOut(how) => (Some(Reason::TimedOut), Some(how)),
        Ending::NoTime(how) => (Some(Reason::NoTime), Some(how)),
        Ending::Crashed(how) => (Some(Reason::Crashed), Some(how)),
        Ending::DeviceLost(how) => (Some(Reason::DeviceLost), Some(how)),
    };

    // A violation comes first: what happened besides does not undo it.
    if judgement.race == Some(Race::Free) {
        let mut proofs: Vec<String> = judgement
            .rows
            .iter()
            .filter(|row| row.count > 0 && !row.says.allowed)
            .map(|row| {
                let outcome = state::line(test, &prediction.observables, &row.outcome);
                format!("forbidden outcome {outcome} seen {}", times(row.count))
            })
            .collect();
        proofs.extend(
            judgement
                .unexpected
                .iter()
                .map(|u| format!("values that no execution produces, {:?}, seen {}", u.raw, times(u.count))),
        );
        if !proofs.is_empty() {
            if let (Some(reason), Some(how)) = (ended, how) {
                proofs.push(format!("the run ended early: {} ({how})", reason.word()));
            }
            return (Verdict::Violates, Some(proofs.join("; ")));
        }
    }

    if let (Some(reason), Some(how)) = (ended, how) {
        return inconclusive(reason, how.clone());
    }
    // What goes wrong while the twin runs counts as if it went wrong with the test. A twin for which there was no room ran nothing.
    let ran = [("", Some(observation)), ("of the twin, ", evidence.twin.map(|twin| twin.observation))];
    let ran = ran.into_iter().filter_map(|(whose, seen)| Some((whose, seen?)));
    let ran = ran.filter(|(whose, seen)| whose.is_empty() || seen.dispatches > 0);
    let discarded = |is_too_much: &dyn Fn(&Observation) -> bool| {
        let (whose, seen) = ran.clone().find(|(_, seen)| is_too_much(seen))?;
        let Observation { discarded_dispatches, dispatches, not_executed, .. } = seen;
        Some(inconclusive(
            Reason::NotExecuted,
            format!(
                "{whose}{discarded_dispatches} of {dispatches} dispatches discarded: {not_executed} instances were not executed as asked"
            ),
        ))
    };
    let nothing_is_left =
        |seen: &Observation| seen.instances() == 0 || discarded_share(seen) > DISCARDED_SHARE_LIMIT;
    if let Some(verdict) = discarded(&nothing_is_left) {
        return verdict;
    }
    match race {
        Race::Racy if prediction.is_undefined() => {
            return (Verdict::Undefined, Some(format!("racy under {}", prediction.model)));
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
                    "{} was not asked to the end: too many outcomes, or too little time",
                    prediction.model
                ),
            );
        }
        Race::Free | Race::Racy => {}
    }
    if observation.not_told_apart > 0 {
        return inconclusive(
            Reason::TimedOut,
            format!(
                "{} instances showed other outcomes than the first {} different ones, which are all that are told apart",
                observation.not_told_apart,
                observation.histogram.counts.len()
            ),
        );
    }
    if observation.instances() == observation.unresolved {
        return inconclusive(
            Reason::NoResolvedInstance,
            format!("all {} instances ran into the bound of a spin loop", observation.unresolved),
        );
    }
    let unexplained = |seen: &Observation| seen.not_executed > 0 && evidence.bound.is_none();
    if let Some(verdict) = discarded(&unexplained) {
        return verdict;
    }
    if !judgement.exercised {
        return inconclusive(Reason::NotExercised, unexercised(evidence, judgement));
    }
    (Verdict::Conforms, sensation(test, prediction, judgement))
}

/// Judges a record again, by its own counts: what its verdict does not follow from, where that is so.
///
/// One that was not exercised, or whose run failed, is not known to be so by its counts; that it shows nothing forbidden is.
pub fn contradiction(line: &RunLine) -> Option<String> {
    let shown = line.outcomes.iter().filter(|outcome| outcome.count > 0 && !outcome.allowed);
    let forbidden = shown.map(|outcome| outcome.count).sum::<u64>();
    let nowhere = line.unexpected.iter().map(|values| values.count).sum::<u64>();
    let proven = forbidden > 0 || nowhere > 0;
    // Of older records nobody knows whether the program races.
    let race = line.race;
    // A claim of forward progress is broken by what hung, which is no outcome.
    let of_progress = line.progress.is_some();
    let what = match line.verdict {
        VerdictWord::Conforms if proven => {
            format!("though {forbidden} instances are forbidden and {nowhere} from nowhere")
        }
        VerdictWord::Conforms if !line.exercised => "though it was not exercised".to_owned(),
        // Where a bound explains it, the detail says so.
        VerdictWord::Conforms if line.not_executed > 0 && race.is_some() && line.detail.is_none() => {
            format!("though {} instances were not executed", line.not_executed)
        }
        VerdictWord::Conforms if line.instances == line.unresolved => "of no resolved instance".to_owned(),
        VerdictWord::Conforms | VerdictWord::Violates if race.is_some_and(|race| race != RaceWord::Free) => {
            "of a program that is not known to be free of races".to_owned()
        }
        VerdictWord::Violates if !proven && !of_progress => "though nothing forbidden was seen".to_owned(),
        VerdictWord::Undefined if race.is_some_and(|race| race != RaceWord::Racy) => {
            "of a program that does not race".to_owned()
        }
        VerdictWord::Inconclusive
            if proven
                && race == Some(RaceWord::Free)
                && line.reason.as_deref() != Some(Reason::NullDevice.word()) =>
        {
            format!("though {forbidden} instances are forbidden and {nowhere} from nowhere")
        }
        VerdictWord::Inconclusive if line.reason.is_none() => "without a reason".to_owned(),
        VerdictWord::Skipped if line.instances > 0 => format!("though {} instances were run", line.instances),
        _ => return None,
    };
    Some(format!("the verdict does not follow from the counts: `{}` {what}", line.verdict.text()))
}

/// What a device showed that the text allows and no implementation is known to show.
fn sensation(test: &Test, prediction: &Prediction, judgement: &Judgement) -> Option<String> {
    let seen = judgement.rows.iter().filter(|row| row.count > 0 && row.says.thin_air).map(|row| {
        let outcome = state::line(test, &prediction.observables, &row.outcome);
        format!(
            "values out of thin air seen {}: {outcome}, which no implementation was known to show",
            times(row.count)
        )
    });
    Some(seen.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// The twin of a test whose threads meet in control barriers or keep to interlocked sections.
fn unsynchronized_twin(test: &Test) -> &'static str {
    match test.interlock_order() {
        Some(_) => "the twin with empty interlocked sections",
        None => "the twin without control barriers",
    }
}

/// What was missing for the test to count as exercised.
fn unexercised(evidence: &Evidence<'_>, judgement: &Judgement) -> String {
    if nothing_kept(&judgement.rows) {
        return format!("none of {} instances met the filter", judgement.instances);
    }
    if evidence.serial_stage {
        return format!("stage runs serially: {} instances", judgement.instances);
    }
    match evidence.test.overlap() {
        Overlap::Possible => {
            let early = evidence.twin.map(|twin| {
                format!("; with early reads {} of {}", twin.early_reads, twin.observation.instances())
            });
            format!(
                "{} interleaved of {} instances{}, {EXERCISED_THRESHOLD} are needed",
                judgement.interleaved,
                judgement.instances,
                early.unwrap_or_default()
            )
        }
        Overlap::ControlBarrier => match evidence.twin {
            None => format!("{} was not run", unsynchronized_twin(evidence.test)),
            Some(twin) => format!(
                "{} showed nothing that the test forbids in {} instances",
                unsynchronized_twin(evidence.test),
                twin.observation.instances()
            ),
        },
        Overlap::Ordered => format!("{} instances were not executed", judgement.not_executed),
    }
}

fn discarded_share(observation: &Observation) -> f64 {
    if observation.dispatches == 0 {
        return 0.0;
    }
    observation.discarded_dispatches as f64 / observation.dispatches as f64
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
