//! `diff`: changes between two results, with their statistical significance.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use campaign::explain_records::{self, ShippedModels};
use campaign::parallel::parallel_map;
use campaign::rejudge::{self, OtherVersionPolicy};
use results::diff::diff as compare;
use results::read::Results;
use results::wire::{Change, ChangeKind, DiffRecord, RunLine, VerdictWord};
use results::{baseline, escape, write};
use sim::Fault;

use crate::arguments::{Diff, ListFormat};
use crate::commands::report::read_all;
use crate::exit::{Failure, Outcome};
use crate::output::StandardOutput;

/// Time limit for finding the broken rules.
const RULE_TIME: Duration = Duration::from_secs(10);

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is not a result, there is no common device, or the comparison cannot be
/// printed.
pub fn diff(arguments: &Diff, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let files: Vec<_> =
        [Some(&arguments.old), arguments.new.as_ref()].into_iter().flatten().cloned().collect();
    // One folder is compared with the current versions of its models.
    let other =
        if arguments.new.is_some() { OtherVersionPolicy::Dropped } else { OtherVersionPolicy::Copied };
    let mut results = read_all(&files, other, &mut outcome)?;
    if arguments.new.is_none() && !quiet {
        let note = "one result: compared with its own outcomes under the current models; name a second one to compare runs";
        crate::output::print_message(note);
    }
    let mut unchanged_notes = Vec::new();
    if let (None, Some(old)) = (&arguments.new, results.first()) {
        let rejudged = rejudge::rejudge_results(old, arguments.model.as_deref())?;
        if let Some(path) = &arguments.out {
            let plan = rejudged.results.plan.as_ref();
            let plan = plan.ok_or_else(|| {
                Failure::input_message(
                    "`--out` needs a results folder or a baseline: run lines have no plan".to_owned(),
                )
            })?;
            baseline::write(path, plan, &rejudged.results.lines).map_err(Failure::environment_error)?;
        }
        results.push(rejudged.results);
        unchanged_notes = rejudged.unchanged_notes;
    }
    let [old, new] = results.as_slice() else { return Ok(outcome) };
    let mut found = compare(old, new).map_err(Failure::input_error)?;
    add_broken_rules(&mut found, new);
    for why in &unchanged_notes {
        crate::output::print_message(why);
    }
    let text = match arguments.format {
        ListFormat::Text => describe_faults(new) + &write::diff::format_diff(&found),
        ListFormat::Json => write::json::format_document(&found).map_err(Failure::environment_error)?,
    };
    StandardOutput::new().print(&text)?;
    if found.compared == 0 {
        outcome.escalate_to(Outcome::Environment);
    }
    for change in &found.changes {
        match change.kind {
            ChangeKind::NewViolation => outcome.escalate_to(Outcome::RuleBroken),
            ChangeKind::NewFailure => outcome.escalate_to(Outcome::Environment),
            // A verdict is missing that the old run had.
            ChangeKind::LostTime if change.old_verdict != Some(VerdictWord::Inconclusive) => {
                outcome.escalate_to(Outcome::Environment);
            }
            _ => {}
        }
    }
    Ok(outcome)
}

/// Adds the broken rule to each new forbidden outcome.
fn add_broken_rules(diff: &mut DiffRecord, new: &Results) {
    let deadline = Instant::now() + RULE_TIME;
    let lines: BTreeMap<(&str, &str), &RunLine> =
        new.lines.iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect();
    let models = ShippedModels::for_lines(new.lines.iter());
    let rule = |change: &Change| {
        let line = *lines.get(&(change.device.as_str(), change.id.as_str()))?;
        let outcome = change.outcome.as_deref()?;
        let recorded = new.plan.as_ref().and_then(|plan| plan.tests.iter().find(|test| test.id == change.id));
        let text = recorded.map(|test| test.text.as_str()).unwrap_or_default();
        let (test, _) = explain_records::recorded_test(&change.id, &line.hashes.test, text)?;
        let explanation = explain_records::explain_line(&test, line, Some(outcome), &models, deadline)?;
        explain_records::describe_broken_rule(&explanation)
    };
    let rules = parallel_map(&diff.changes, |change| {
        if change.kind == ChangeKind::NewViolation { rule(change) } else { None }
    });
    for (change, rule) in diff.changes.iter_mut().zip(rules) {
        change.rules.extend(rule);
    }
}

/// Names the injected faults of simulated GPUs in the later run.
fn describe_faults(new: &Results) -> String {
    let devices = new.plan.iter().flat_map(|plan| &plan.devices);
    devices
        .filter(|device| device.kind == "simulated")
        .filter_map(|device| {
            let (_, name) = device.driver_info.split_once(", fault ")?;
            let row = name.parse::<Fault>().ok()?.row()?;
            Some(format!(
                "{} has an injected fault: {} ({})\n",
                escape::escape_line(&device.name),
                row.rule,
                row.name
            ))
        })
        .collect()
}
