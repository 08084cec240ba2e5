//! Judges the observed buffer contents of a shader.
//!
//! If the model's allowed contents are known, any other content is a violation. Otherwise the contents are
//! listed and the verdict is never "conforms". A shader with a data race allows every content.

use std::collections::{BTreeMap, BTreeSet};

use entry_point::question::ViolatedPart;
use results::judge::EXERCISED_THRESHOLD;
use results::state::State;
use results::wire::{
    BrokenPart, ClaimRecord, ContentRecord, Hashes, LineVerdict, RaceWord, RunContext, RunLine, RunOutcome,
    ShaderBuffer, ShaderRun, UnexpectedValues, VerdictWord,
};
use results::{Ending, EvidenceCheck, Reason, weigh_violation};
use runner::pool::{Attempt, AttemptEnd, JobReport};
use runner::shader::{Answer, Content, ShaderObservations};

use super::{AnalyzedShader, ExpectedContents, FinalNumber, ShaderClaim, ShaderKind, overlapping_words};
use crate::kinds::result_line::{line_context, replay_command};
use crate::probe;
use crate::run::{JudgedJob, device_failure, job_ending};

/// The largest number of contents in a list.
const MAX_LISTED_CONTENTS: usize = 256;
/// The largest number of parts of a claim in a list.
const MAX_BROKEN_PARTS: usize = 4;

pub(super) fn skipped_line(run: &ShaderKind<'_>, cell: usize, missing: &str) -> RunLine {
    build_line(
        run,
        cell,
        &ShaderObservations::default(),
        EvaluatedContents::default(),
        LineVerdict::skipped(missing),
    )
}

#[derive(Default)]
struct EvaluatedContents {
    outcomes: Vec<RunOutcome>,
    unexpected: Vec<UnexpectedValues>,
    contents: Vec<ContentRecord>,
    /// The number of dispatches with a forbidden content, and the most frequent such content as text.
    forbidden: (u64, Option<String>),
    /// The number of dispatches that break the claim.
    claim_violations: u64,
    /// The parts that do not hold for the most frequent contents that break the claim.
    broken_parts: Vec<BrokenPart>,
}

/// Judges a worker's report.
pub(super) fn judge_report(
    run: &ShaderKind<'_>,
    cell: usize,
    report: JobReport<ShaderObservations, Answer>,
    before: Option<Reason>,
) -> JudgedJob {
    // An earlier attempt counts if it has more dispatches than the last one.
    let mut attempts: Vec<Attempt<ShaderObservations, Answer>> = report.earlier;
    let ending = job_ending::<ShaderKind<'_>>(&report.last.end, before);
    attempts.push(report.last);
    let failure = device_failure(&ending);
    let (mut observations, mut validation) = (ShaderObservations::default(), Vec::new());
    let mut violating = None;
    // Omitted dispatches of every attempt count, whichever attempt is used.
    let (mut not_executed, mut left_out, mut outside_grid, mut misread) = (0, 0, 0, 0);
    let (target, shader, _) = run.plan.shader_run(cell);
    for attempt in attempts {
        let attempt_observations = match attempt.end {
            AttemptEnd::Answered(answer) => {
                validation.extend(answer.validation);
                answer.seen
            }
            AttemptEnd::Failed(_) | AttemptEnd::NotRun(_) => attempt.snapshot.unwrap_or_default(),
        };
        not_executed += attempt_observations.not_executed;
        left_out += attempt_observations.left_out;
        outside_grid += attempt_observations.outside_grid;
        misread += attempt_observations.misread;
        // A later attempt does not cancel a violation.
        if attempt_observations.left_out == 0
            && evaluate_contents(shader, &attempt_observations).forbidden.0 > 0
        {
            violating = Some(attempt_observations.clone());
        }
        if attempt_observations.dispatches >= observations.dispatches {
            observations = attempt_observations;
        }
    }
    let is_violation = violating.is_some();
    let mut observations = violating.unwrap_or(observations);
    observations.not_executed = not_executed;
    // A violation counts if its attempt omitted no dispatch.
    observations.left_out = if is_violation { 0 } else { left_out };
    observations.outside_grid = outside_grid;
    observations.misread = misread;
    let missing = match &ending {
        Ok(_) => None,
        // The simulated GPU names itself.
        Err(missing) if probe::is_simulated(&target.listed) => Some(missing.clone()),
        Err(missing) => Some(format!("device lacks {missing}")),
    };
    if let Some(missing) = missing {
        return JudgedJob { line: skipped_line(run, cell, &missing), failure, validation };
    }
    let evaluated = evaluate_contents(shader, &observations);
    let bound = target.listed.capabilities.loop_budget.filter(|_| shader.has_loops);
    let verdict = LineVerdict {
        exercised: observations.dispatches >= EXERCISED_THRESHOLD,
        ..derive_verdict(shader, &observations, &evaluated, ending.ok().as_ref(), bound)
    };
    JudgedJob { line: build_line(run, cell, &observations, evaluated, verdict), failure, validation }
}

fn derive_verdict(
    shader: &AnalyzedShader,
    observations: &ShaderObservations,
    evaluated: &EvaluatedContents,
    ending: Option<&Ending>,
    bound: Option<u32>,
) -> LineVerdict {
    if let (count @ 1.., Some(what)) = &evaluated.forbidden {
        let what = format!(
            "{count} of {} dispatches left contents that no execution produces: {what}",
            observations.dispatches
        );
        let missing = match (bound, observations.left_out) {
            (None, 0) if observations.not_executed == 0 => None,
            (None, 0) => Some(format!("{} dispatches wrote nothing", observations.not_executed)),
            (Some(budget), 0) => Some(format!("the device ends loops after {budget} iterations")),
            (_, _) => Some(describe_left_out(observations).unwrap_or_else(|| {
                "the device omits copies or dispatches next to the shader's, or parts of them, or executes \
                 some twice"
                    .to_owned()
            })),
        };
        return weigh_violation(&what, missing.as_deref(), EvidenceCheck::NeighbourReceipts);
    }
    if let Some((reason, why)) = ending.and_then(Ending::failure) {
        return LineVerdict::inconclusive(reason, why.to_owned());
    }
    let (different, dispatches) = (observations.different, observations.dispatches);
    if dispatches == 0 && observations.not_executed == 0 {
        return LineVerdict::inconclusive(Reason::NoTime, "no dispatch ended within the time".to_owned());
    }
    let spread = format!("{different} different contents in {dispatches} dispatches");
    match &shader.expected {
        ExpectedContents::Undefined(why) => {
            LineVerdict::new(VerdictWord::Undefined, format!("every content is allowed: {why}; {spread}"))
        }
        _ if observations.not_executed > 0 || observations.left_out > 0 => {
            let why = match (observations.not_executed, observations.left_out) {
                (0, _) => describe_left_out(observations)
                    .unwrap_or_else(|| "the device executed a submission in part".to_owned()),
                (dispatches, 0) => format!("{dispatches} dispatches wrote nothing"),
                (dispatches, _) => match describe_left_out(observations) {
                    Some(why) => format!("{dispatches} dispatches are not counted; {why}"),
                    None => format!(
                        "{dispatches} dispatches were omitted in part or entirely, executed twice, or wrote \
                         nothing"
                    ),
                },
            };
            LineVerdict::inconclusive(Reason::NotExecuted, why)
        }
        ExpectedContents::Unknown { .. } if shader.claim.is_some() && observations.others == 0 => {
            let dispatched = format!("in {dispatches} dispatches; other contents are not judged");
            match evaluated.claim_violations {
                0 if dispatches < EXERCISED_THRESHOLD => {
                    let why = format!("{dispatches} dispatches, fewer than {EXERCISED_THRESHOLD}");
                    LineVerdict::inconclusive(Reason::NotExercised, why)
                }
                0 => LineVerdict::new(VerdictWord::Conforms, format!("the expectation holds {dispatched}")),
                // Nothing is known of the device: the expectation may be one that the model does not promise.
                broken => {
                    let what = format!("the expectation fails in {broken} of {dispatches} dispatches");
                    LineVerdict::inconclusive(Reason::NotJudged, what)
                }
            }
        }
        ExpectedContents::Unknown { why, .. } => {
            LineVerdict::inconclusive(Reason::NotJudged, format!("{why}; {spread}"))
        }
        ExpectedContents::Known { .. } if observations.others > 0 => LineVerdict::inconclusive(
            Reason::NotJudged,
            format!("too many different contents to count; {spread}"),
        ),
        ExpectedContents::Known { .. } if dispatches < EXERCISED_THRESHOLD => {
            let why = format!("{dispatches} dispatches, fewer than {EXERCISED_THRESHOLD}");
            LineVerdict::inconclusive(Reason::NotExercised, why)
        }
        ExpectedContents::Known { contents, .. } => {
            let allowed = contents.values().filter(|content_verdict| content_verdict.allowed).count();
            let detail = format!("{spread}, of {allowed} that the model allows");
            LineVerdict::new(VerdictWord::Conforms, detail)
        }
    }
}

/// Describes why submissions are not counted, if surplus invocations or broken reads are the reason.
fn describe_left_out(observations: &ShaderObservations) -> Option<String> {
    match (observations.outside_grid, observations.misread) {
        (0, 0) => None,
        (0, misread) => Some(results::describe_misread("submissions", misread)),
        (outside, _) => Some(results::describe_excess(outside)),
    }
}

fn number_values(cells: &[FinalNumber], watched: &[(u32, u64)], content: &Content) -> Vec<u64> {
    let value = |cell: &FinalNumber| {
        let word = |number: u64| {
            let position = watched.binary_search(&(cell.buffer, number)).ok();
            position.and_then(|position| content.watched.get(position)).copied().unwrap_or(0)
        };
        let words = overlapping_words(cell).enumerate();
        let all = words.fold(0_u128, |all, (index, number)| all | u128::from(word(number)) << (32 * index));
        let bits = 8 * cell.bytes.clamp(1, 8);
        (all >> (8 * (cell.offset % 4))) as u64 & (u64::MAX >> (64 - bits))
    };
    cells.iter().map(value).collect()
}

/// Lists the first parts of a claim that do not hold for values of its numbers.
fn list_broken_parts(claim: &ShaderClaim, values: &[u64]) -> Vec<BrokenPart> {
    let violated = claim.claim.violated_parts(values).into_iter().take(MAX_BROKEN_PARTS);
    let number = |cell: usize| Some((claim.cells.get(cell)?.name.clone(), (*values.get(cell)?).into()));
    let describe = |part: ViolatedPart<'_>| BrokenPart {
        text: part.text.to_owned(),
        line: part.line,
        found: part.cells.into_iter().filter_map(number).collect(),
    };
    violated.map(describe).collect()
}

fn content_state(cells: &[FinalNumber], values: &[u64]) -> State {
    cells.iter().zip(values).map(|(cell, value)| (cell.name.clone(), (*value).into())).collect()
}

fn content_outcome(
    state: State,
    count: u64,
    verdict: super::ContentVerdict,
    witness: Option<bool>,
) -> RunOutcome {
    RunOutcome {
        state,
        count,
        allowed: verdict.allowed,
        weak: verdict.weak,
        witness,
        ..RunOutcome::default()
    }
}

fn evaluate_contents(shader: &AnalyzedShader, observations: &ShaderObservations) -> EvaluatedContents {
    let watched = shader.watched_words();
    let mut evaluated =
        EvaluatedContents { contents: list_contents(shader, observations), ..EvaluatedContents::default() };
    let holds = |content: &Content| {
        shader.claim.as_ref().map(|claim| claim.claim.holds(&number_values(&claim.cells, &watched, content)))
    };
    let broken = || observations.contents.iter().filter(|content| holds(content) == Some(false));
    evaluated.claim_violations = broken().map(|content| content.count).sum();
    if let (Some(claim), Some(content)) = (&shader.claim, broken().max_by_key(|content| content.count)) {
        let values = number_values(&claim.cells, &watched, content);
        evaluated.broken_parts = list_broken_parts(claim, &values);
    }
    let any_content = super::ContentVerdict { allowed: true, weak: false };
    match (&shader.expected, &shader.claim) {
        (ExpectedContents::Known { cells, contents }, claim) => {
            let mut counts: BTreeMap<Vec<u64>, (u64, Option<bool>)> = BTreeMap::new();
            let mut most_frequent = (0, None);
            for content in &observations.contents {
                let values = number_values(cells, &watched, content);
                let allowed = contents.get(&values).is_some_and(|content_verdict| content_verdict.allowed)
                    && !content.elsewhere;
                if !allowed {
                    evaluated.forbidden.0 += content.count;
                    if content.count > most_frequent.0 {
                        let text = results::state::format_state(&content_state(cells, &values));
                        let elsewhere =
                            if content.elsewhere { " and words that no invocation writes" } else { "" };
                        most_frequent = (content.count, Some(format!("{text}{elsewhere}")));
                    }
                }
                if content.elsewhere || !contents.contains_key(&values) {
                    evaluated.unexpected.push(UnexpectedValues { raw: values, count: content.count });
                } else {
                    let entry = counts.entry(values).or_insert((0, holds(content)));
                    entry.0 += content.count;
                }
            }
            evaluated.forbidden.1 = most_frequent.1;
            // A claim may use numbers that no invocation writes; then it is evaluated only for observed
            // contents.
            let position = |cell: &FinalNumber| {
                cells.iter().position(|own| {
                    (own.buffer, own.offset, own.bytes) == (cell.buffer, cell.offset, cell.bytes)
                })
            };
            let positions: Option<Vec<usize>> =
                claim.as_ref().and_then(|claim| claim.cells.iter().map(position).collect());
            for (values, verdict) in contents {
                let (count, witness) = counts.get(values).copied().unwrap_or((0, None));
                let claimed = claim.as_ref().zip(positions.as_ref()).map(|(claim, positions)| {
                    let claim_values: Vec<u64> =
                        positions.iter().filter_map(|at| values.get(*at)).copied().collect();
                    claim.claim.holds(&claim_values)
                });
                evaluated.outcomes.push(content_outcome(
                    content_state(cells, values),
                    count,
                    *verdict,
                    witness.or(claimed),
                ));
            }
        }
        // Without known contents, the outcomes are the values of the claim.
        (ExpectedContents::Undefined(_) | ExpectedContents::Unknown { .. }, Some(claim)) => {
            let mut counts: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
            for content in &observations.contents {
                *counts.entry(number_values(&claim.cells, &watched, content)).or_default() += content.count;
            }
            for (values, count) in counts {
                let witness = Some(claim.claim.holds(&values));
                evaluated.outcomes.push(content_outcome(
                    content_state(&claim.cells, &values),
                    count,
                    any_content,
                    witness,
                ));
            }
        }
        (ExpectedContents::Undefined(_) | ExpectedContents::Unknown { .. }, None) => {
            let rows = evaluated.contents.iter().take(MAX_LISTED_CONTENTS);
            evaluated.outcomes =
                rows.map(|row| content_outcome(row.differs.clone(), row.count, any_content, None)).collect();
        }
    }
    evaluated
}

/// Lists the contents, with names for the words that differ.
fn list_contents(shader: &AnalyzedShader, observations: &ShaderObservations) -> Vec<ContentRecord> {
    let rows = &observations.contents[..observations.contents.len().min(MAX_LISTED_CONTENTS)];
    let words: BTreeSet<(u32, u64)> =
        rows.iter().flat_map(|row| &row.changes).map(|change| (change.buffer, change.word)).collect();
    let words: Vec<(u32, u64)> = words.into_iter().collect();
    let names: BTreeMap<(u32, u64), String> =
        words.iter().copied().zip((shader.word_names)(&words)).collect();
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

fn build_line(
    run: &ShaderKind<'_>,
    cell: usize,
    observations: &ShaderObservations,
    evaluated: EvaluatedContents,
    verdict: LineVerdict,
) -> RunLine {
    let (target, shader, hash) = run.plan.shader_run(cell);
    let ShaderKind { options, seed, .. } = run;
    let is_skipped = verdict.verdict == VerdictWord::Skipped;
    let words: Vec<&str> = std::iter::once(&shader.file).chain(&shader.flags).map(String::as_str).collect();
    let instances = options.instances.or(Some(observations.dispatches).filter(|count| *count > 0));
    let replay = replay_command(&words, target, *seed, instances, &options.replay_flags());
    let context = line_context(target, &run.plan.chosen, *seed, replay);
    let (race, why) = match &shader.expected {
        ExpectedContents::Known { .. } => (RaceWord::Free, None),
        ExpectedContents::Undefined(why) => (RaceWord::Racy, Some(why.clone())),
        ExpectedContents::Unknown { is_race_free: true, why } => (RaceWord::Free, Some(why.clone())),
        ExpectedContents::Unknown { is_race_free: false, why } => (RaceWord::Unknown, Some(why.clone())),
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
    let listed: u64 = evaluated.contents.iter().map(|content| content.count).sum();
    let hashes = Hashes {
        test: hash.to_owned(),
        kernel: runner::hash_kernels(&shader.shader.words),
        ..context.hashes.clone()
    };
    let context = RunContext { id: shader.id.clone(), name: shader.shader.entry.clone(), hashes, ..context };
    RunLine {
        race: Some(race).filter(|_| !is_skipped),
        instances: observations.dispatches,
        not_executed: observations.not_executed,
        seconds: observations.seconds,
        outcomes: if is_skipped { Vec::new() } else { evaluated.outcomes },
        unexpected: evaluated.unexpected,
        shader: Some(ShaderRun {
            file: shader.file.clone(),
            entry: shader.shader.entry.clone(),
            grid: shader.shader.grid,
            local_size: shader.local_size,
            compiler: shader.compiler.clone(),
            judged: matches!(shader.expected, ExpectedContents::Known { .. }),
            why,
            is_right_in_language: shader.is_right_in_language,
            buffers: shader.shader.buffers.iter().zip(&shader.buffer_names).map(buffer).collect(),
            different: observations.different,
            contents: evaluated.contents,
            others: observations.dispatches.saturating_sub(listed),
            claim: shader.claim.as_ref().map(|claim| ClaimRecord {
                text: claim.text.clone(),
                broken: evaluated.claim_violations,
                parts: evaluated.broken_parts,
            }),
            notes: shader.notes.clone(),
        }),
        question: shader.claim.as_ref().map(|claim| format!("forall ({})", claim.text)),
        ..RunLine::of_run(context).with_verdict(verdict)
    }
}
