//! Rejudges recorded results: keeps the observed outcomes and recomputes the verdicts with current models, or
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

use crate::choice::{self, Chosen};
use crate::kinds::litmus::mutants::{self, Candidate};
use crate::kinds::litmus::planned::PlannedTest;
use crate::kinds::litmus::recorded::{RECORD_PATIENCE, compare_with_hsa, predict_again};
use crate::parallel::map;
use crate::{Failure, reasons};

/// Time limit for all records of one command.
const ALL_RECORDS_PATIENCE: Duration = Duration::from_secs(300);

/// Rejudged results.
#[derive(Clone, Debug)]
pub struct Again {
    /// The lines in their original order, rejudged where possible.
    pub results: Results,
    /// One sentence for each line that was copied unchanged, with the reason.
    pub kept: Vec<String>,
}

/// Rejudges every line, with `model` if given, else with the current version of the model that judged it
/// before.
///
/// Lines of progress tests and shaders, and lines whose test text is not available, are copied unchanged.
///
/// # Errors
/// If `model` does not exist, or the plan of the new results cannot be serialized.
pub fn judged_again(old: &Results, model: Option<&str>) -> Result<Again, Failure> {
    let mut models: BTreeMap<&str, Option<Chosen>> = BTreeMap::new();
    for line in &old.lines {
        models.entry(&line.model).or_insert_with(|| choice::load_shipped(&line.model));
    }
    let asked = model.map(choice::load).transpose()?;
    let judge = |line: &RunLine| asked.as_ref().or_else(|| models.get(line.model.as_str())?.as_ref());
    let texts = texts(old);
    let lines = map(&old.lines, |line| {
        if !is_judged_litmus(line) {
            return Ok(line.clone());
        }
        let chosen = judge(line).ok_or_else(|| format!("`{}` is not a shipped model", line.model))?;
        let text = texts.get(line.id.as_str()).copied().unwrap_or_default();
        let planned = reasons::planned(&line.id, &line.hashes.test, text)
            .ok_or_else(|| "its text differs from the text that was run".to_owned())?;
        if !chosen.model.judges(planned.judged.dialect) {
            return Err(format!("{} does not support its dialect", chosen.model.name()));
        }
        let prediction = predict_again(&planned, chosen, &[line], RECORD_PATIENCE)?;
        let named = RunLine { model: chosen.model.name().to_owned(), ..line.clone() };
        Ok(rejudge::rejudge(&named, &planned.judged, &prediction, &chosen.hash))
    });
    let mut kept = Vec::new();
    let mut new = Vec::new();
    for (before, line) in old.lines.iter().zip(lines) {
        new.push(line.unwrap_or_else(|why: String| {
            kept.push(format!("{} keeps its verdict: {why}", escape::escape_line(&before.id)));
            before.clone()
        }));
    }
    let mut results = Results { source: PathBuf::from("judged again"), lines: new, ..old.clone() };
    let by_test: BTreeMap<(&str, &str), &RunLine> =
        results.lines.iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect();
    if let Some(plan) = &mut results.plan {
        let devices: Vec<String> = plan.devices.iter().map(|device| device.name.clone()).collect();
        for test in &mut plan.tests {
            for (model, device) in test.models.iter_mut().zip(&devices) {
                if let Some(line) = by_test.get(&(device.as_str(), test.id.as_str())) {
                    *model = ModelRecord { name: line.model.clone(), hash: line.hashes.model.clone() };
                }
            }
        }
        plan.plan = plan.hash().map_err(Failure::environment_error)?;
    }
    Ok(Again { results, kept })
}

/// Recorded results whose verdicts were recomputed.
#[derive(Clone, Debug)]
pub struct Recomputed {
    /// The results. Lines without an answer of the model have no verdict.
    pub results: Results,
    /// The number of lines that lost their verdict.
    pub dropped: usize,
    /// One sentence for each reason why lines were copied or lost their verdict.
    pub notes: Vec<String>,
}

/// The records of one test by one model, with the prediction that confirms them.
struct GroupAnswer {
    records: Vec<Result<Record, String>>,
    predicted: Option<(PlannedTest, Prediction)>,
}

/// Recomputes the mutants of confirmed lines. Mutants whose records are not confirmed are copied.
fn with_mutants(mut lines: Vec<RunLine>, confirmed: &[Option<&(PlannedTest, Prediction)>]) -> Vec<RunLine> {
    let candidates: Vec<_> = (lines.iter().zip(confirmed))
        .map(|(line, own)| {
            let (planned, prediction) = (*own)?;
            Some(Candidate { device: line.device.as_str(), test: &planned.judged, prediction })
        })
        .collect();
    let mutants = mutants::among(&candidates);
    let places: BTreeMap<(String, String), usize> =
        lines.iter().enumerate().map(|(at, line)| ((line.device.clone(), line.id.clone()), at)).collect();
    let tests: Vec<(String, String)> =
        lines.iter().map(|line| (line.id.clone(), line.hashes.test.clone())).collect();
    for ((line, own), mutants) in lines.iter_mut().zip(confirmed).zip(mutants) {
        if own.is_none() {
            continue;
        }
        let mut all: Vec<usize> = (line.mutants.iter())
            .filter_map(|id| places.get(&(line.device.clone(), id.clone())).copied())
            .filter(|at| confirmed.get(*at).is_some_and(Option::is_none))
            .chain(mutants)
            .collect();
        all.sort_unstable();
        all.dedup();
        // A folder may have a test under several names.
        let mut known = BTreeSet::new();
        let is_new = |(id, hash): &&(String, String)| {
            known.insert((hash.clone(), id.split_once('@').map(|(_, variant)| variant.to_owned())))
        };
        let mutants = all.into_iter().filter_map(|at| tests.get(at)).filter(is_new);
        line.mutants = mutants.map(|(id, _)| id.clone()).collect();
    }
    lines
}

/// The result of recomputing a record.
enum Record {
    Confirmed(RunLine),
    /// No shipped model or no text: the reason.
    Copied(String),
    Dropped(RunLine),
}

/// The treatment of verdicts that another version of a model gave, and that the current one does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherVersion {
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
pub fn recompute(results: Results, other: OtherVersion) -> Result<Recomputed, Failure> {
    let deadline = Instant::now() + ALL_RECORDS_PATIENCE;
    let texts = texts(&results);
    let mut models: BTreeMap<&str, Option<Chosen>> = BTreeMap::new();
    // Lines of several devices share a prediction.
    let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (index, line) in results.lines.iter().enumerate().filter(|(_, line)| is_judged_litmus(line)) {
        models.entry(&line.model).or_insert_with(|| choice::load_shipped(&line.model));
        let key = (line.id.as_str(), line.hashes.test.as_str(), &*line.model, line.hashes.model.as_str());
        groups.entry(key).or_default().push(index);
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let answers = map(&groups, |((id, hash, model, model_hash), indices)| {
        let lines: Vec<&RunLine> = indices.iter().filter_map(|index| results.lines.get(*index)).collect();
        let copied = |why: String| GroupAnswer {
            records: lines.iter().map(|_| Ok(Record::Copied(why.clone()))).collect(),
            predicted: None,
        };
        let Some(chosen) = models.get(model).and_then(Option::as_ref) else {
            return copied(format!("the model `{}` is not shipped", escape::escape_line(model)));
        };
        let version = format!("recorded by another version of the model `{}`", escape::escape_line(model));
        let is_current = *model_hash == chosen.hash;
        if !is_current && other == OtherVersion::Copied {
            return copied(version);
        }
        let text = texts.get(id).copied().unwrap_or_default();
        let Some(planned) = reasons::planned(id, hash, text) else {
            return copied("no text of the test is available".to_owned());
        };
        let left = deadline.saturating_duration_since(Instant::now()).min(RECORD_PATIENCE);
        let prediction = match predict_again(&planned, chosen, &lines, left) {
            Ok(prediction) => prediction,
            Err(why) => {
                let dropped = |line: &&RunLine| rejudge::withdraw_verdict(line, Reason::TimedOut, &why);
                let records = lines.iter().map(|line| Ok(Record::Dropped(dropped(line)))).collect();
                return GroupAnswer { records, predicted: None };
            }
        };
        let comparison = compare_with_hsa(&planned, &prediction, left);
        let recomputed = |line: &&RunLine| match (
            rejudge::verify_record(line, &planned.judged, &prediction, model_hash),
            &comparison,
        ) {
            (Ok(line), Some(comparison)) => Ok(Record::Confirmed(rejudge::compare_with_hsa(
                &line,
                &planned.judged,
                &prediction.observables,
                comparison,
            ))),
            (Ok(line), None) => Ok(Record::Confirmed(RunLine { hsa: None, ..line })),
            (Err(what), _) if !is_current => {
                let why = format!("{version}; {what}");
                Ok(Record::Dropped(rejudge::withdraw_verdict(line, Reason::NotJudged, &why)))
            }
            (Err(what), _) => Err(what),
        };
        let records = lines.iter().map(recomputed).collect();
        GroupAnswer { records, predicted: Some((planned, prediction)) }
    });
    let mut new = results.lines.clone();
    let (mut dropped, mut copied) = (0, BTreeMap::<String, u64>::new());
    let mut confirmed: Vec<Option<&(PlannedTest, Prediction)>> = vec![None; new.len()];
    for ((_, indices), GroupAnswer { records, predicted }) in groups.iter().zip(&answers) {
        for (index, record) in indices.iter().zip(records) {
            let Some(place) = new.get_mut(*index) else { continue };
            match record.as_ref().map_err(|what| edited(&results, place, what))? {
                Record::Confirmed(line) => {
                    *place = line.clone();
                    confirmed.iter_mut().skip(*index).take(1).for_each(|own| *own = predicted.as_ref());
                }
                Record::Copied(why) => *copied.entry(why.clone()).or_default() += 1,
                Record::Dropped(line) => {
                    dropped += usize::from(line.verdict != place.verdict);
                    *place = line.clone();
                }
            }
        }
    }
    let new = with_mutants(new, &confirmed);
    let sentence = |(why, count): (&String, &u64)| {
        format!("note: {} copied without judging again: {why}", plural(*count, "verdict"))
    };
    let mut notes: Vec<String> = copied.iter().map(sentence).collect();
    if dropped > 0 {
        let lost = plural(dropped as u64, "recorded verdict");
        notes.push(format!(
            "error: {lost} dropped: the current model does not confirm them; `vk-litmus diff` with one folder \
             compares versions of a model"
        ));
    }
    Ok(Recomputed { results: Results { lines: new, ..results }, dropped, notes })
}

/// Returns true for the record of a litmus test that claims a verdict.
fn is_judged_litmus(line: &RunLine) -> bool {
    line.progress.is_none() && line.shader.is_none() && line.verdict != VerdictWord::Skipped
}

/// Returns the texts of the plan by test id.
fn texts(results: &Results) -> BTreeMap<&str, &str> {
    let tests = results.plan.iter().flat_map(|plan| &plan.tests);
    tests.map(|test| (test.id.as_str(), test.text.as_str())).collect()
}

/// Returns the failure for a record that its counts contradict.
fn edited(results: &Results, line: &RunLine, what: &str) -> Failure {
    Failure::input_message(format!(
        "{}: the verdict for `{}` on `{}` does not follow from its counts: {what}; run the test again",
        escape::escape_line(&results.source.to_string_lossy()),
        escape::escape_line(&line.id),
        escape::escape_line(&line.device)
    ))
}
