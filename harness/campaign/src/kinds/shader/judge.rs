//! Judges the observed buffer contents of a shader.
//!
//! If the model's allowed contents are known, any other content is a violation. Otherwise the contents are
//! listed and the verdict is never "conforms". A shader with a data race allows every content.

use std::collections::{BTreeMap, BTreeSet};

use results::judge::EXERCISED_THRESHOLD;
use results::state::State;
use results::wire::{
    ClaimRecord, ContentRecord, Hashes, RUN_SCHEMA, RaceWord, RunLine, RunOutcome, ShaderBuffer, ShaderRun,
    UnexpectedValues, VerdictWord,
};
use results::{Ending, EvidenceCheck, Reason, Verdict, weigh_violation};
use runner::pool::{Attempt, AttemptEnd, JobReport};
use runner::shader::{Answer, Content, ShaderObservations};

use super::{AnalyzedShader, ExpectedContents, FinalNumber, Shaders, words_of};
use crate::kinds::{copyable, driver_record, quoted};
use crate::run::{JudgedJob, ending, failure_of};

/// The largest number of contents in a list.
const MAX_LISTED: usize = 256;

/// Returns the line of a skipped shader.
pub(super) fn skipped(run: &Shaders<'_>, cell: usize, missing: &str) -> RunLine {
    let says = LineVerdict {
        verdict: VerdictWord::Skipped,
        reason: Some(missing.to_owned()),
        detail: Some(missing.to_owned()),
    };
    line(run, cell, &ShaderObservations::default(), EvaluatedContents::default(), says)
}

/// The verdict fields of a line.
struct LineVerdict {
    verdict: VerdictWord,
    reason: Option<String>,
    detail: Option<String>,
}

impl LineVerdict {
    fn inconclusive(reason: Reason, detail: String) -> LineVerdict {
        LineVerdict {
            verdict: VerdictWord::Inconclusive,
            reason: Some(reason.word().to_owned()),
            detail: Some(detail),
        }
    }
}

/// The evaluated contents of a run.
#[derive(Default)]
struct EvaluatedContents {
    outcomes: Vec<RunOutcome>,
    unexpected: Vec<UnexpectedValues>,
    contents: Vec<ContentRecord>,
    /// The number of dispatches with a forbidden content, and the most frequent such content as text.
    forbidden: (u64, Option<String>),
    /// The number of dispatches that break the claim.
    broken: u64,
}

/// Judges a worker's report.
pub(super) fn judged(
    run: &Shaders<'_>,
    cell: usize,
    report: JobReport<ShaderObservations, Answer>,
    before: Option<Reason>,
) -> JudgedJob {
    // An earlier attempt counts if it has more dispatches than the last one.
    let mut attempts: Vec<Attempt<ShaderObservations, Answer>> = report.earlier;
    let ending = ending::<Shaders<'_>>(&report.last.end, before);
    attempts.push(report.last);
    let failure = failure_of(&ending);
    let (mut seen, mut validation) = (ShaderObservations::default(), Vec::new());
    let mut violating = None;
    // Omitted dispatches of every attempt count, whichever attempt is used.
    let (mut not_executed, mut left_out, mut outside_grid, mut misread) = (0, 0, 0, 0);
    let (target, shader, _) = run.plan.place(cell);
    for attempt in attempts {
        let own = match attempt.end {
            AttemptEnd::Answered(answer) => {
                validation.extend(answer.validation);
                answer.seen
            }
            AttemptEnd::Failed(_) | AttemptEnd::NotRun(_) => attempt.snapshot.unwrap_or_default(),
        };
        not_executed += own.not_executed;
        left_out += own.left_out;
        outside_grid += own.outside_grid;
        misread += own.misread;
        // A later attempt does not cancel a violation.
        if own.left_out == 0 && found(shader, &own).forbidden.0 > 0 {
            violating = Some(own.clone());
        }
        if own.dispatches >= seen.dispatches {
            seen = own;
        }
    }
    let is_violation = violating.is_some();
    let mut seen = violating.unwrap_or(seen);
    seen.not_executed = not_executed;
    // A violation counts if its attempt omitted no dispatch.
    seen.left_out = if is_violation { 0 } else { left_out };
    seen.outside_grid = outside_grid;
    seen.misread = misread;
    let missing = match &ending {
        Ok(_) => None,
        // The reason from the simulated GPU already contains "lacks".
        Err(missing) if missing.contains("lacks") => Some(missing.clone()),
        Err(missing) => Some(format!("device lacks {missing}")),
    };
    if let Some(missing) = missing {
        return JudgedJob { line: skipped(run, cell, &missing), failure, validation };
    }
    let found = found(shader, &seen);
    let bound = target.listed.capabilities.loop_budget.filter(|_| shader.loops);
    let says = says(shader, &seen, &found, ending.ok().as_ref(), bound);
    JudgedJob { line: line(run, cell, &seen, found, says), failure, validation }
}

fn says(
    shader: &AnalyzedShader,
    seen: &ShaderObservations,
    found: &EvaluatedContents,
    ending: Option<&Ending>,
    bound: Option<u32>,
) -> LineVerdict {
    let failure = match ending {
        None | Some(Ending::Finished) => None,
        Some(Ending::NullDevice) => Some((Reason::NullDevice, "the device executes nothing".to_owned())),
        Some(Ending::TimedOut(why)) => Some((Reason::TimedOut, why.clone())),
        Some(Ending::NoTime(why)) => Some((Reason::NoTime, why.clone())),
        Some(Ending::Crashed(why)) => Some((Reason::Crashed, why.clone())),
        Some(Ending::DeviceLost(why)) => Some((Reason::DeviceLost, why.clone())),
        Some(Ending::CountsDisagree(why)) => Some((Reason::CountsDisagree, why.clone())),
    };
    if let (count @ 1.., Some(what)) = &found.forbidden {
        let what = format!(
            "{count} of {} dispatches left contents that no execution produces: {what}",
            seen.dispatches
        );
        let missing = match (bound, seen.left_out) {
            (None, 0) if seen.not_executed == 0 => None,
            (None, 0) => Some(format!("{} dispatches wrote nothing", seen.not_executed)),
            (Some(budget), 0) => Some(format!("the device ends loops after {budget} iterations")),
            (_, _) => Some(describe_left_out(seen).unwrap_or_else(|| {
                "the device omits copies or dispatches next to the shader's, or parts of them, or executes \
                 some twice"
                    .to_owned()
            })),
        };
        let (verdict, detail) = weigh_violation(&what, missing.as_deref(), EvidenceCheck::NeighbourReceipts);
        return match verdict {
            Verdict::Inconclusive(reason) => LineVerdict::inconclusive(reason, detail),
            _ => LineVerdict { verdict: VerdictWord::Violates, reason: None, detail: Some(detail) },
        };
    }
    if let Some((reason, why)) = failure {
        return LineVerdict::inconclusive(reason, why);
    }
    let (different, dispatches) = (seen.different, seen.dispatches);
    if dispatches == 0 && seen.not_executed == 0 {
        return LineVerdict::inconclusive(Reason::NoTime, "no dispatch ended within the time".to_owned());
    }
    let spread = format!("{different} different contents in {dispatches} dispatches");
    match &shader.expected {
        ExpectedContents::Undefined(why) => LineVerdict {
            verdict: VerdictWord::Undefined,
            reason: None,
            detail: Some(format!("every content is allowed: {why}; {spread}")),
        },
        _ if seen.not_executed > 0 => {
            let why = match (seen.not_executed, seen.left_out) {
                (dispatches, 0) => format!("{dispatches} dispatches wrote nothing"),
                (dispatches, _) => match describe_left_out(seen) {
                    Some(why) => format!("{dispatches} dispatches are not counted; {why}"),
                    None => format!(
                        "{dispatches} dispatches were omitted in part or entirely, executed twice, or wrote \
                         nothing"
                    ),
                },
            };
            LineVerdict::inconclusive(Reason::NotExecuted, why)
        }
        ExpectedContents::Unknown { why, .. } => {
            LineVerdict::inconclusive(Reason::NotJudged, format!("{why}; {spread}"))
        }
        ExpectedContents::Known { .. } if seen.others > 0 => LineVerdict::inconclusive(
            Reason::NotJudged,
            format!("too many different contents to count; {spread}"),
        ),
        ExpectedContents::Known { .. } if dispatches < EXERCISED_THRESHOLD => {
            let why = format!("{dispatches} dispatches, fewer than {EXERCISED_THRESHOLD}");
            LineVerdict::inconclusive(Reason::NotExercised, why)
        }
        ExpectedContents::Known { contents, .. } => {
            let allowed = contents.values().filter(|says| says.allowed).count();
            let detail = format!("{spread}, of {allowed} that the model allows");
            LineVerdict { verdict: VerdictWord::Conforms, reason: None, detail: Some(detail) }
        }
    }
}

/// Describes why submissions are not counted, if surplus invocations or broken reads are the reason.
fn describe_left_out(seen: &ShaderObservations) -> Option<String> {
    match (seen.outside_grid, seen.misread) {
        (0, 0) => None,
        (0, misread) => Some(results::describe_misread("submissions", misread)),
        (outside, _) => Some(results::describe_excess(outside)),
    }
}

/// Returns the values of numbers in a content.
fn number_values(cells: &[FinalNumber], watched: &[(u32, u64)], content: &Content) -> Vec<u64> {
    let value = |cell: &FinalNumber| {
        let word = |number: u64| {
            let position = watched.binary_search(&(cell.buffer, number)).ok();
            position.and_then(|position| content.watched.get(position)).copied().unwrap_or(0)
        };
        let words = words_of(cell).enumerate();
        let all = words.fold(0_u128, |all, (index, number)| all | u128::from(word(number)) << (32 * index));
        let bits = 8 * cell.bytes.clamp(1, 8);
        (all >> (8 * (cell.offset % 4))) as u64 & (u64::MAX >> (64 - bits))
    };
    cells.iter().map(value).collect()
}

fn state(cells: &[FinalNumber], values: &[u64]) -> State {
    cells.iter().zip(values).map(|(cell, value)| (cell.name.clone(), (*value).into())).collect()
}

fn outcome(state: State, count: u64, says: super::ContentVerdict, witness: Option<bool>) -> RunOutcome {
    RunOutcome {
        state,
        count,
        batches: None,
        allowed: says.allowed,
        weak: says.weak,
        filtered: false,
        thin_air: false,
        witness,
        hsa: None,
    }
}

fn found(shader: &AnalyzedShader, seen: &ShaderObservations) -> EvaluatedContents {
    let watched = shader.watched();
    let mut found =
        EvaluatedContents { contents: list_contents(shader, seen), ..EvaluatedContents::default() };
    let holds = |content: &Content| {
        shader.claim.as_ref().map(|claim| (claim.holds)(&number_values(&claim.cells, &watched, content)))
    };
    found.broken =
        seen.contents.iter().filter(|content| holds(content) == Some(false)).map(|c| c.count).sum();
    let whatever = super::ContentVerdict { allowed: true, weak: false };
    match (&shader.expected, &shader.claim) {
        (ExpectedContents::Known { cells, contents }, claim) => {
            let mut counts: BTreeMap<Vec<u64>, (u64, Option<bool>)> = BTreeMap::new();
            let mut most = (0, None);
            for content in &seen.contents {
                let values = number_values(cells, &watched, content);
                let allowed = contents.get(&values).is_some_and(|says| says.allowed) && !content.elsewhere;
                if !allowed {
                    found.forbidden.0 += content.count;
                    if content.count > most.0 {
                        let text = results::state::format_state(&state(cells, &values));
                        let elsewhere =
                            if content.elsewhere { " and words that no invocation writes" } else { "" };
                        most = (content.count, Some(format!("{text}{elsewhere}")));
                    }
                }
                if content.elsewhere || !contents.contains_key(&values) {
                    found.unexpected.push(UnexpectedValues { raw: values, count: content.count });
                } else {
                    let entry = counts.entry(values).or_insert((0, holds(content)));
                    entry.0 += content.count;
                }
            }
            found.forbidden.1 = most.1;
            // A claim may use numbers that no invocation writes; then it is evaluated only for observed
            // contents.
            let position = |cell: &FinalNumber| {
                cells.iter().position(|own| {
                    (own.buffer, own.offset, own.bytes) == (cell.buffer, cell.offset, cell.bytes)
                })
            };
            let positions: Option<Vec<usize>> =
                claim.as_ref().and_then(|claim| claim.cells.iter().map(position).collect());
            for (values, says) in contents {
                let (count, witness) = counts.get(values).copied().unwrap_or((0, None));
                let claimed = claim.as_ref().zip(positions.as_ref()).map(|(claim, positions)| {
                    let own: Vec<u64> = positions.iter().filter_map(|at| values.get(*at)).copied().collect();
                    (claim.holds)(&own)
                });
                found.outcomes.push(outcome(state(cells, values), count, *says, witness.or(claimed)));
            }
        }
        // Without known contents, the outcomes are the values of the claim.
        (ExpectedContents::Undefined(_) | ExpectedContents::Unknown { .. }, Some(claim)) => {
            let mut counts: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
            for content in &seen.contents {
                *counts.entry(number_values(&claim.cells, &watched, content)).or_default() += content.count;
            }
            for (values, count) in counts {
                let witness = Some((claim.holds)(&values));
                found.outcomes.push(outcome(state(&claim.cells, &values), count, whatever, witness));
            }
        }
        (ExpectedContents::Undefined(_) | ExpectedContents::Unknown { .. }, None) => {
            let rows = found.contents.iter().take(MAX_LISTED);
            found.outcomes =
                rows.map(|row| outcome(row.differs.clone(), row.count, whatever, None)).collect();
        }
    }
    found
}

/// Lists the contents, with names for the words that differ.
fn list_contents(shader: &AnalyzedShader, seen: &ShaderObservations) -> Vec<ContentRecord> {
    let rows = &seen.contents[..seen.contents.len().min(MAX_LISTED)];
    let words: BTreeSet<(u32, u64)> =
        rows.iter().flat_map(|row| &row.changes).map(|change| (change.buffer, change.word)).collect();
    let words: Vec<(u32, u64)> = words.into_iter().collect();
    let names: BTreeMap<(u32, u64), String> = words.iter().copied().zip((shader.words)(&words)).collect();
    let record = |row: &Content| ContentRecord {
        count: row.count,
        hash: row.hash.clone(),
        differs: (row.changes.iter())
            .map(|change| {
                let place = (change.buffer, change.word);
                (names.get(&place).cloned().unwrap_or_else(|| format!("{place:?}")), change.value.into())
            })
            .collect(),
        changed: row.changed,
    };
    rows.iter().map(record).collect()
}

fn line(
    run: &Shaders<'_>,
    cell: usize,
    seen: &ShaderObservations,
    found: EvaluatedContents,
    says: LineVerdict,
) -> RunLine {
    let (target, shader, hash) = run.plan.place(cell);
    let Shaders { options, seed, .. } = run;
    let skipped = says.verdict == VerdictWord::Skipped;
    let mut replay = format!("vk-litmus run {}", quoted(&shader.file));
    for word in &shader.flags {
        replay += &format!(" {}", quoted(word));
    }
    replay += &format!(" --device {} --seed {seed}", quoted(target.device()));
    if let Some(instances) = options.instances.or(Some(seen.dispatches).filter(|count| *count > 0)) {
        replay += &format!(" --instances {instances}");
    }
    for (flag, value) in [("fault", &options.fault), ("model", &options.model), ("stress", &options.stress)] {
        if let Some(value) = value {
            replay += &format!(" --{flag} {}", quoted(value));
        }
    }
    let (race, why) = match &shader.expected {
        ExpectedContents::Known { .. } => (RaceWord::Free, None),
        ExpectedContents::Undefined(why) => (RaceWord::Racy, Some(why.clone())),
        ExpectedContents::Unknown { race_free: true, why } => (RaceWord::Free, Some(why.clone())),
        ExpectedContents::Unknown { race_free: false, why } => (RaceWord::Unknown, Some(why.clone())),
    };
    let buffer = |(input, name): (&runner::shader::ShaderInput, &String)| {
        let [set, binding, element] = input.at;
        let words = input.words();
        let is_array = shader.shader.buffers.iter().any(|other| other.at == [set, binding, 1]);
        ShaderBuffer {
            at: if is_array { format!("{set}.{binding}[{element}]") } else { format!("{set}.{binding}") },
            name: name.clone(),
            bytes: 4 * words.len() as u64,
            hash: runner::hash_kernels(&words),
        }
    };
    let listed: u64 = found.contents.iter().map(|content| content.count).sum();
    RunLine {
        schema: RUN_SCHEMA.to_owned(),
        id: shader.id.clone(),
        name: shader.shader.entry.clone(),
        device: target.name.clone(),
        model: run.plan.chosen.model.name().to_owned(),
        verdict: says.verdict,
        race: Some(race).filter(|_| !skipped),
        reason: says.reason,
        detail: says.detail,
        exercised: seen.dispatches >= EXERCISED_THRESHOLD,
        instances: seen.dispatches,
        interleaved: 0,
        repeated: 0,
        not_executed: seen.not_executed,
        unresolved: 0,
        seconds: seen.seconds,
        batches: None,
        outcomes: if skipped { Vec::new() } else { found.outcomes },
        unexpected: found.unexpected,
        seed: *seed,
        stress: target.stress.name.clone(),
        replay: copyable(replay),
        memory: None,
        counted_by_host: None,
        spread: None,
        drift: None,
        progress: None,
        shader: Some(ShaderRun {
            file: shader.file.clone(),
            entry: shader.shader.entry.clone(),
            grid: shader.shader.grid,
            local_size: shader.local_size,
            compiler: shader.compiler.clone(),
            judged: matches!(shader.expected, ExpectedContents::Known { .. }),
            why,
            buffers: shader.shader.buffers.iter().zip(&shader.names).map(buffer).collect(),
            different: seen.different,
            contents: found.contents,
            others: seen.dispatches.saturating_sub(listed),
            claim: shader
                .claim
                .as_ref()
                .map(|claim| ClaimRecord { text: claim.text.clone(), broken: found.broken }),
            notes: shader.notes.clone(),
        }),
        hashes: Hashes {
            test: hash.to_owned(),
            model: run.plan.chosen.hash.clone(),
            kernel: runner::hash_kernels(&shader.shader.words),
        },
        question: shader.claim.as_ref().map(|claim| format!("forall ({})", claim.text)),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        driver: Some(driver_record(&target.listed.identity)),
        hsa: None,
        mutants: Vec::new(),
    }
}
