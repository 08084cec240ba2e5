//! Rejudges recorded results: keeps the observed outcomes and recomputes the verdicts with current models.
//!
//! A line is copied unchanged if its test or model is not available any more, or if the model finds no answer
//! in time. No verdict follows from an incomplete prediction.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use litmus::{Prediction, Test};
use model::{Budget, Options, predict, settle};
use results::read::Results;
use results::wire::{ModelRecord, RunLine, VerdictWord};
use results::{again, show};

use crate::choice::{self, Chosen};
use crate::kinds::litmus::plan::{mark_filtered, without_filter};
use crate::parallel::map;
use crate::patience::patience;
use crate::{Failure, reasons};

/// Time limit of the model for one test.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let texts: BTreeMap<&str, &str> = old
        .plan
        .iter()
        .flat_map(|plan| &plan.tests)
        .map(|test| (test.id.as_str(), test.text.as_str()))
        .collect();
    let lines = map(&old.lines, |line| {
        let told = line.progress.is_some() || line.shader.is_some();
        if told || line.verdict == VerdictWord::Skipped {
            return Ok(line.clone());
        }
        let chosen = judge(line).ok_or_else(|| format!("`{}` is not a shipped model", line.model))?;
        let text = texts.get(line.id.as_str()).copied().unwrap_or_default();
        let (test, _) = reasons::with_filter(&line.id, &line.hashes.test, text)
            .ok_or_else(|| "its text differs from the text that was run".to_owned())?;
        if !chosen.model.judges(test.dialect) {
            return Err(format!("{} does not support its dialect", chosen.model.name()));
        }
        let prediction = predict_again(&test, chosen, line)?;
        let mut line = again::again(line, &test, &prediction, &chosen.hash);
        chosen.model.name().clone_into(&mut line.model);
        Ok(line)
    });
    let mut kept = Vec::new();
    let mut new = Vec::new();
    for (before, line) in old.lines.iter().zip(lines) {
        new.push(line.unwrap_or_else(|why: String| {
            kept.push(format!("{} keeps its verdict: {why}", show::line(&before.id)));
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

/// Returns the model's prediction for a test, complete enough to judge the outcomes in `line`.
fn predict_again(test: &Test, chosen: &Chosen, line: &RunLine) -> Result<Prediction, String> {
    let plain = without_filter(test);
    let stop = patience(PATIENCE);
    let options = Options { budget: Budget::until(&stop), ..Options::default() };
    let mut prediction = predict(&plain, &chosen.model, &options).map_err(|error| error.to_string())?;
    if !prediction.complete {
        let seen = again::seen(line, &plain, &prediction.observables);
        let settled = settle(&prediction, &plain, &chosen.model, seen.iter(), &options);
        // A prediction that was cut short proves nothing: a missing outcome may still be allowed.
        prediction = settled
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("no answer within the time limit for {}", chosen.model.name()))?;
    }
    mark_filtered(test, &mut prediction);
    Ok(prediction)
}
