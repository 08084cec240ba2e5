//! Rejudges recorded results: recomputes their verdicts with current models, or
//! checks them against the recorded models.
//!
//! A line is copied unchanged if its test or model is not available any more, or if the model finds no answer
//! in time. No verdict follows from an incomplete prediction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use litmus::Prediction;
use results::read::Results;
use results::wire::{ModelRecord, RunLine, VerdictWord};
use results::write::number::plural;
use results::{Reason, escape, rejudge};

use crate::kinds::litmus::mutants::{self, MutantCandidate};
use crate::kinds::litmus::planned::PlannedTest;
use crate::kinds::litmus::recorded::{RECORD_TIMEOUT, compare_with_hsa, predict_for_records};
use crate::models::{self, LoadedModel};
use crate::parallel::parallel_map;
use crate::{Failure, explain_records};

/// Time limit for all records of one command.
const ALL_RECORDS_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Clone, Debug)]
pub struct RejudgedResults {
    /// The lines in their original order, rejudged where possible.
    pub results: Results,
    /// One sentence for each line that was copied unchanged, with the reason.
    pub unchanged_notes: Vec<String>,
}

/// Rejudges every line, with `model` if given, else with the current version of the model that judged it
/// before.
///
/// Lines of progress tests and shaders, and lines whose test text is not available, are copied unchanged.
///
/// # Errors
/// If `model` does not exist, or the plan of the new results cannot be serialized.
pub fn rejudge_results(old: &Results, model: Option<&str>) -> Result<RejudgedResults, Failure> {
    let mut models: BTreeMap<&str, Option<LoadedModel>> = BTreeMap::new();
    for line in &old.lines {
        models.entry(&line.model).or_insert_with(|| models::load_shipped(&line.model));
    }
    let requested_model = model.map(models::load).transpose()?;
    let model_of =
        |line: &RunLine| requested_model.as_ref().or_else(|| models.get(line.model.as_str())?.as_ref());
    let texts_by_test = texts_by_test(old);
    let rejudged_lines = parallel_map(&old.lines, |line| {
        if !has_litmus_verdict(line) {
            return Ok(line.clone());
        }
        let chosen = model_of(line).ok_or_else(|| format!("`{}` is not a shipped model", line.model))?;
        let text = texts_by_test.get(line.id.as_str()).copied().unwrap_or_default();
        let planned = explain_records::plan_recorded_test(&line.id, &line.hashes.test, text)
            .ok_or_else(|| "its text differs from the text that was run".to_owned())?;
        if !chosen.model.supports_dialect(planned.judged_test().dialect) {
            return Err(format!("{} does not support its dialect", chosen.model.name()));
        }
        let prediction = predict_for_records(&planned, chosen, &[line], RECORD_TIMEOUT)?;
        let relabeled = RunLine { model: chosen.model.name().to_owned(), ..line.clone() };
        Ok(rejudge::rejudge(&relabeled, planned.judged_test(), &prediction, &chosen.hash))
    });
    let mut unchanged_notes = Vec::new();
    let mut new_lines = Vec::new();
    for (before, line) in old.lines.iter().zip(rejudged_lines) {
        new_lines.push(line.unwrap_or_else(|why: String| {
            unchanged_notes.push(format!("{} keeps its verdict: {why}", escape::escape_line(&before.id)));
            before.clone()
        }));
    }
    let mut results = Results { source: PathBuf::from("judged again"), lines: new_lines, ..old.clone() };
    let lines_by_test: BTreeMap<(&str, &str), &RunLine> =
        results.lines.iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect();
    if let Some(plan) = &mut results.plan {
        let devices: Vec<String> = plan.devices.iter().map(|device| device.name.clone()).collect();
        for test in &mut plan.tests {
            for (model, device) in test.models.iter_mut().zip(&devices) {
                if let Some(line) = lines_by_test.get(&(device.as_str(), test.id.as_str())) {
                    *model = ModelRecord { name: line.model.clone(), hash: line.hashes.model.clone() };
                }
            }
        }
        plan.plan = plan.hash().map_err(Failure::environment_error)?;
    }
    Ok(RejudgedResults { results, unchanged_notes })
}

/// Recorded results whose verdicts were recomputed.
#[derive(Clone, Debug)]
pub struct RecomputedResults {
    /// The results. Lines without an answer of the model have no verdict.
    pub results: Results,
    /// The number of lines that lost their verdict.
    pub dropped_count: usize,
    /// One sentence for each reason why lines were copied or lost their verdict.
    pub notes: Vec<String>,
}

/// The records of one test by one model, with the prediction that confirms them.
struct GroupAnswer {
    records: Vec<Result<RecomputedRecord, String>>,
    predicted: Option<(PlannedTest, Prediction)>,
}

/// Recomputes the mutants of confirmed lines. Mutants whose records are not confirmed are copied.
fn recompute_mutants(
    mut lines: Vec<RunLine>,
    confirmed: &[Option<&(PlannedTest, Prediction)>],
) -> Vec<RunLine> {
    let candidates: Vec<_> = (lines.iter().zip(confirmed))
        .map(|(line, confirmation)| {
            let (planned, prediction) = (*confirmation)?;
            Some(MutantCandidate { device: line.device.as_str(), test: planned.judged_test(), prediction })
        })
        .collect();
    let mutants = mutants::find_mutants_among(&candidates);
    let indices: BTreeMap<(String, String), usize> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| ((line.device.clone(), line.id.clone()), index))
        .collect();
    let tests: Vec<(String, String)> =
        lines.iter().map(|line| (line.id.clone(), line.hashes.test.clone())).collect();
    for ((line, confirmation), mutants) in lines.iter_mut().zip(confirmed).zip(mutants) {
        if confirmation.is_none() {
            continue;
        }
        let mut all: Vec<usize> = (line.mutants.iter())
            .filter_map(|id| indices.get(&(line.device.clone(), id.clone())).copied())
            .filter(|index| confirmed.get(*index).is_some_and(Option::is_none))
            .chain(mutants)
            .collect();
        all.sort_unstable();
        all.dedup();
        // A folder may have a test under several names.
        let mut listed = BTreeSet::new();
        let is_new = |(id, hash): &&(String, String)| {
            listed.insert((hash.clone(), id.split_once('@').map(|(_, variant)| variant.to_owned())))
        };
        let mutants = all.into_iter().filter_map(|index| tests.get(index)).filter(is_new);
        line.mutants = mutants.map(|(id, _)| id.clone()).collect();
    }
    lines
}

/// A record after its verdict was recomputed.
enum RecomputedRecord {
    Confirmed(RunLine),
    /// No shipped model or no text: the reason.
    Copied(String),
    Dropped(RunLine),
}

/// The treatment of verdicts that another version of a model gave, and that the current one does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherVersionPolicy {
    /// They are dropped: a record can claim any version.
    Dropped,
    /// They are copied, to be compared with those of the current version.
    Copied,
}

/// Recomputes the outcomes, flags and verdicts of recorded litmus tests from their counts and texts.
///
/// Records of a model or a test that is not shipped, of shaders and of forward progress are copied.
///
/// # Errors
/// The first record that differs from what follows from its counts.
pub fn recompute_results(
    results: Results,
    other_versions: OtherVersionPolicy,
) -> Result<RecomputedResults, Failure> {
    let deadline = Instant::now() + ALL_RECORDS_TIMEOUT;
    let texts_by_test = texts_by_test(&results);
    let mut models: BTreeMap<&str, Option<LoadedModel>> = BTreeMap::new();
    // Lines of several devices share a prediction.
    let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (index, line) in results.lines.iter().enumerate().filter(|(_, line)| has_litmus_verdict(line)) {
        models.entry(&line.model).or_insert_with(|| models::load_shipped(&line.model));
        let key = (line.id.as_str(), line.hashes.test.as_str(), &*line.model, line.hashes.model.as_str());
        groups.entry(key).or_default().push(index);
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let answers = parallel_map(&groups, |((id, hash, model, model_hash), indices)| {
        let lines: Vec<&RunLine> = indices.iter().filter_map(|index| results.lines.get(*index)).collect();
        let copy_group = |why: String| GroupAnswer {
            records: lines.iter().map(|_| Ok(RecomputedRecord::Copied(why.clone()))).collect(),
            predicted: None,
        };
        let Some(chosen) = models.get(model).and_then(Option::as_ref) else {
            return copy_group(format!("the model `{}` is not shipped", escape::escape_line(model)));
        };
        let version = format!("recorded by another version of the model `{}`", escape::escape_line(model));
        let is_current = *model_hash == chosen.hash;
        if !is_current && other_versions == OtherVersionPolicy::Copied {
            return copy_group(version);
        }
        let text = texts_by_test.get(id).copied().unwrap_or_default();
        let Some(planned) = explain_records::plan_recorded_test(id, hash, text) else {
            return copy_group("no text of the test is available".to_owned());
        };
        let remaining = deadline.saturating_duration_since(Instant::now()).min(RECORD_TIMEOUT);
        let prediction = match predict_for_records(&planned, chosen, &lines, remaining) {
            Ok(prediction) => prediction,
            Err(why) => {
                let withdraw = |line: &&RunLine| rejudge::withdraw_verdict(line, Reason::TimedOut, &why);
                let records =
                    lines.iter().map(|line| Ok(RecomputedRecord::Dropped(withdraw(line)))).collect();
                return GroupAnswer { records, predicted: None };
            }
        };
        let comparison = compare_with_hsa(&planned, &prediction, remaining);
        let recompute_line = |line: &&RunLine| match (
            rejudge::verify_record(line, planned.judged_test(), &prediction, model_hash),
            &comparison,
        ) {
            (Ok(line), Some(comparison)) => Ok(RecomputedRecord::Confirmed(rejudge::compare_with_hsa(
                &line,
                planned.judged_test(),
                &prediction.observables,
                comparison,
            ))),
            (Ok(line), None) => Ok(RecomputedRecord::Confirmed(RunLine { hsa: None, ..line })),
            (Err(what), _) if !is_current => {
                let why = format!("{version}; {what}");
                Ok(RecomputedRecord::Dropped(rejudge::withdraw_verdict(line, Reason::NotJudged, &why)))
            }
            (Err(what), _) => Err(what),
        };
        let records = lines.iter().map(recompute_line).collect();
        GroupAnswer { records, predicted: Some((planned, prediction)) }
    });
    let mut new_lines = results.lines.clone();
    let (mut dropped_count, mut copied_counts) = (0, BTreeMap::<String, u64>::new());
    let mut confirmed: Vec<Option<&(PlannedTest, Prediction)>> = vec![None; new_lines.len()];
    for ((_, indices), GroupAnswer { records, predicted }) in groups.iter().zip(&answers) {
        for (index, record) in indices.iter().zip(records) {
            let Some(line_slot) = new_lines.get_mut(*index) else { continue };
            match record.as_ref().map_err(|what| contradicted_record_error(&results, line_slot, what))? {
                RecomputedRecord::Confirmed(line) => {
                    *line_slot = line.clone();
                    confirmed.iter_mut().skip(*index).take(1).for_each(|slot| *slot = predicted.as_ref());
                }
                RecomputedRecord::Copied(why) => *copied_counts.entry(why.clone()).or_default() += 1,
                RecomputedRecord::Dropped(line) => {
                    dropped_count += usize::from(line.verdict != line_slot.verdict);
                    *line_slot = line.clone();
                }
            }
        }
    }
    let new_lines = recompute_mutants(new_lines, &confirmed);
    let sentence = |(why, count): (&String, &u64)| {
        format!("note: {} copied without judging again: {why}", plural(*count, "verdict"))
    };
    let mut notes: Vec<String> = copied_counts.iter().map(sentence).collect();
    if dropped_count > 0 {
        let lost = plural(dropped_count as u64, "recorded verdict");
        notes.push(format!(
            "error: {lost} dropped: the current model does not confirm them; `vk-litmus diff` with one folder \
             compares versions of a model"
        ));
    }
    Ok(RecomputedResults { results: Results { lines: new_lines, ..results }, dropped_count, notes })
}

/// Returns true for the record of a litmus test that claims a verdict.
fn has_litmus_verdict(line: &RunLine) -> bool {
    line.progress.is_none() && line.shader.is_none() && line.verdict != VerdictWord::Skipped
}

/// Returns the texts of the plan by test id.
fn texts_by_test(results: &Results) -> BTreeMap<&str, &str> {
    let tests = results.plan.iter().flat_map(|plan| &plan.tests);
    tests.map(|test| (test.id.as_str(), test.text.as_str())).collect()
}

/// Returns the failure for a record that its counts contradict.
fn contradicted_record_error(results: &Results, line: &RunLine, what: &str) -> Failure {
    Failure::input_message(format!(
        "{}: the verdict for `{}` on `{}` does not follow from its counts: {what}; run the test again",
        escape::escape_line(&results.source.to_string_lossy()),
        escape::escape_line(&line.id),
        escape::escape_line(&line.device)
    ))
}
