//! Comparison of two runs: changed verdicts, new and vanished outcomes, and rate changes larger than chance.
//!
//! Rates are compared outcome by outcome if both sides have repeated runs or batches, with the scatter between the
//! sides estimated from all of them ([`Scatter`]), and p-values are corrected by Holm's method ([`holm`]). One run on
//! each side is not comparable: rates differ between runs of one build.

use std::collections::{BTreeMap, BTreeSet};

use crate::read::Results;
use crate::reason::Reason;
use crate::report::device_names;
use crate::state;
use crate::statistics::rates::{RateComparison, RunComparison, Scatter, compare_runs};
use crate::statistics::{CONFIDENCE, holm};
use crate::wire::{
    Change, ChangeKind, DIFF_SCHEMA, DiffRecord, DiffSide, PartUnit, RunLine, RunOutcome, ScatterRecord,
    VerdictWord,
};

/// Why two results cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum DiffError {
    /// Both have several devices, with no name in common.
    #[error("no device in common: there are {old} and {new}")]
    NoDevice { old: String, new: String },
}

/// An outcome of one test, with its counts in both runs.
struct RatePair<'a> {
    old: &'a RunLine,
    new: &'a RunLine,
    outcome: String,
    /// Instances with this outcome, in the old and in the new run.
    counts: (u64, u64),
    /// `None` if a side has neither repeated runs nor batches.
    comparison: Option<RunComparison>,
}

/// Compares two runs. Devices are matched by name. If each run has one device, these are compared even if
/// their names differ, so that two drivers can be compared.
///
/// # Errors
/// Returns an error if both runs have several devices and no name in common.
pub fn diff(old: &Results, new: &Results) -> Result<DiffRecord, DiffError> {
    let pairs = pair_devices(old, new)?;
    // Tests without a verdict become lines with the reason `missing`, so that they appear in the comparison.
    let (old_every, new_every) = (old.complete_lines(), new.complete_lines());
    let mut changes = Vec::new();
    let mut rates = Vec::new();
    let (mut compared, mut only_old, mut only_new) = (0, Vec::new(), Vec::new());
    for (old_name, new_device) in &pairs {
        let old_lines = lines_by_id(&old_every, old_name);
        let new_lines = lines_by_id(&new_every, new_device);
        only_old.extend(
            old_lines
                .iter()
                .filter(|(id, _)| !new_lines.contains_key(*id))
                .map(|(id, _)| label_test(id, new_device, &pairs)),
        );
        for (id, line) in lines_of_device(&new_every, new_device) {
            let Some(before) = old_lines.get(id) else {
                only_new.push(label_test(id, new_device, &pairs));
                if line.verdict == VerdictWord::Violates {
                    changes.extend(new_violations(None, line));
                }
                continue;
            };
            compared += 1;
            let is_changed = |left: &str, right: &str| !left.is_empty() && !right.is_empty() && left != right;
            if is_changed(&before.hashes.test, &line.hashes.test) {
                changes.push(new_change(ChangeKind::OtherTest, Some(before), line));
                continue;
            }
            if before.model != line.model || is_changed(&before.hashes.model, &line.hashes.model) {
                changes.push(new_change(ChangeKind::OtherModel, Some(before), line));
            }
            changes.extend(verdict_changes(before, line));
            if has_one_rate(before) && has_one_rate(line) {
                rates.extend(compare_rates(before, line));
            }
        }
    }
    let comparisons: Vec<RunComparison> = rates.iter().filter_map(|rate| rate.comparison).collect();
    let scatter = Scatter::estimate(&comparisons);
    changes.extend(rate_changes(&rates, scatter.unwrap_or(Scatter::NONE)));
    changes.sort_by(|left, right| {
        let p = |change: &Change| change.p.unwrap_or(if change.significant { 0.0 } else { 1.0 });
        (left.kind, !left.significant)
            .cmp(&(right.kind, !right.significant))
            .then(p(left).total_cmp(&p(right)))
    });
    let side = |results: &Results, names: Vec<&String>| DiffSide {
        source: results.source.to_string_lossy().into_owned(),
        devices: names.into_iter().map(|name| name_with_driver(results, name)).collect(),
    };
    Ok(DiffRecord {
        schema: DIFF_SCHEMA.to_owned(),
        old: side(old, pairs.iter().map(|(old, _)| old).collect()),
        new: side(new, pairs.iter().map(|(_, new)| new).collect()),
        compared,
        rates: comparisons.len(),
        not_comparable: rates.len() - comparisons.len(),
        scatter: scatter.map(|scatter| ScatterRecord { scale: scatter.scale, freedom: scatter.freedom }),
        changes,
        only_old,
        only_new,
    })
}

/// Returns true if one rate describes the whole run: all of it had the same stress.
fn has_one_rate(line: &RunLine) -> bool {
    line.spread.is_none()
}

/// Pairs the devices by name.
fn pair_devices(old: &Results, new: &Results) -> Result<Vec<(String, String)>, DiffError> {
    let (old_names, new_names) = (device_names(old), device_names(new));
    if let ([old_name], [new_name]) = (old_names.as_slice(), new_names.as_slice()) {
        return Ok(vec![(old_name.clone(), new_name.clone())]);
    }
    let common: Vec<(String, String)> = new_names
        .iter()
        .filter(|name| old_names.contains(name))
        .map(|name| (name.clone(), name.clone()))
        .collect();
    if common.is_empty() {
        let list = |names: &[String]| {
            if names.is_empty() {
                "none".to_owned()
            } else {
                crate::escape::escape_line(&names.join(", ")).into_owned()
            }
        };
        return Err(DiffError::NoDevice { old: list(&old_names), new: list(&new_names) });
    }
    Ok(common)
}

/// Returns the name of a device with its driver, if the results have a plan.
fn name_with_driver(results: &Results, name: &str) -> String {
    let record =
        results.plan.as_ref().and_then(|plan| plan.devices.iter().find(|device| device.name == name));
    match record.map(|record| format!("{} {}", record.driver_name, record.driver_info)) {
        Some(driver) if !driver.trim().is_empty() => format!("{name} ({})", driver.trim()),
        _ => name.to_owned(),
    }
}

fn lines_by_id<'a>(lines: &'a [RunLine], device: &str) -> BTreeMap<&'a str, &'a RunLine> {
    lines_of_device(lines, device).collect()
}

fn lines_of_device<'a>(lines: &'a [RunLine], device: &str) -> impl Iterator<Item = (&'a str, &'a RunLine)> {
    let device = device.to_owned();
    lines.iter().filter(move |line| line.device == device).map(|line| (line.id.as_str(), line))
}

fn label_test(id: &str, device: &str, pairs: &[(String, String)]) -> String {
    if pairs.len() == 1 { id.to_owned() } else { format!("{id} on {device}") }
}

fn resolved_instances(line: &RunLine) -> u64 {
    line.instances.saturating_sub(line.unresolved)
}

fn new_change(kind: ChangeKind, old: Option<&RunLine>, new: &RunLine) -> Change {
    Change {
        kind,
        id: new.id.clone(),
        device: new.device.clone(),
        model: new.model.clone(),
        old_verdict: old.map(|line| line.verdict),
        new_verdict: new.verdict,
        outcome: None,
        old_count: 0,
        old_instances: old.map_or(0, resolved_instances),
        new_count: 0,
        new_instances: resolved_instances(new),
        statistic: None,
        p: None,
        significant: true,
        detail: new.detail.clone(),
        rules: Vec::new(),
    }
}

fn verdict_changes(old: &RunLine, new: &RunLine) -> Vec<Change> {
    if new.verdict == VerdictWord::Violates {
        return new_violations(Some(old), new);
    }
    let has_reason = |line: &RunLine, reasons: &[Reason]| {
        line.verdict == VerdictWord::Inconclusive && reasons.iter().any(|reason| line.has_reason(*reason))
    };
    // These say nothing about the device.
    let lacks_time = |line: &RunLine| has_reason(line, &[Reason::NoTime, Reason::Missing]);
    let is_failure = |line: &RunLine| {
        line.verdict == VerdictWord::Inconclusive && !has_reason(line, &[Reason::NotExercised])
    };
    let broken = new.broken_claim().filter(|_| old.broken_claim().is_none());
    let kind = if lacks_time(new) {
        if lacks_time(old) {
            return Vec::new();
        }
        ChangeKind::LostTime
    } else if broken.is_some() || is_failure(new) && (!is_failure(old) || lacks_time(old)) {
        ChangeKind::NewFailure
    } else if old.verdict == VerdictWord::Violates {
        ChangeKind::GoneViolation
    } else if (old.verdict, &old.reason) != (new.verdict, &new.reason) {
        ChangeKind::Verdict
    } else {
        return Vec::new();
    };
    let mut change = new_change(kind, Some(old), new);
    if let (Some(reason), true) = (&new.reason, new.detail != new.reason) {
        let detail = new.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        change.detail = Some(format!("{reason}{detail}"));
    }
    if let Some(claim) = broken {
        change.detail = Some(claim.describe_failure());
    }
    vec![change]
}

/// Returns the forbidden outcomes that the violating run `new` observed and `old` did not.
fn new_violations(old: Option<&RunLine>, new: &RunLine) -> Vec<Change> {
    let before = |outcome: &str| {
        let line = old.filter(|line| line.verdict == VerdictWord::Violates)?;
        line.outcomes
            .iter()
            .find(|o| o.count > 0 && state::format_state(&o.state) == outcome)
            .map(|o| o.count)
    };
    let mut changes: Vec<Change> = new
        .outcomes
        .iter()
        .filter(|outcome| outcome.count > 0 && !outcome.allowed)
        .filter_map(|outcome| {
            let text = state::format_state(&outcome.state);
            if before(&text).is_some() {
                return None;
            }
            let mut change = new_change(ChangeKind::NewViolation, old, new);
            change.new_count = outcome.count;
            change.outcome = Some(text);
            Some(change)
        })
        .collect();
    let is_corrupt = |line: &RunLine| line.verdict == VerdictWord::Violates && !line.unexpected.is_empty();
    if is_corrupt(new) && !old.is_some_and(is_corrupt) {
        let mut change = new_change(ChangeKind::NewViolation, old, new);
        change.new_count = new.unexpected.iter().fold(0, |sum, values| sum.saturating_add(values.count));
        change.rules = vec!["values that no execution produces: corruption".to_owned()];
        changes.push(change);
    }
    changes
}

/// Returns the comparable rates: one for each outcome that either run observed.
fn compare_rates<'a>(old: &'a RunLine, new: &'a RunLine) -> Vec<RatePair<'a>> {
    let rows = |line: &'a RunLine| -> BTreeMap<String, &'a RunOutcome> {
        line.outcomes.iter().map(|outcome| (state::format_state(&outcome.state), outcome)).collect()
    };
    let (before, after) = (rows(old), rows(new));
    let outcomes: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let has_instances = resolved_instances(old) > 0 && resolved_instances(new) > 0;
    outcomes
        .into_iter()
        .filter_map(|outcome| {
            let (before, after) = (before.get(outcome).copied(), after.get(outcome).copied());
            let count = |row: Option<&RunOutcome>| row.map_or(0, |row| row.count);
            let counts = (count(before), count(after));
            (has_instances && counts.0.max(counts.1) > 0).then(|| RatePair {
                old,
                new,
                outcome: outcome.clone(),
                counts,
                comparison: compare_outcome(old, before, new, after),
            })
        })
        .collect()
}

/// Compares an outcome by batches, or else by repeated runs.
fn compare_outcome(
    old: &RunLine,
    before: Option<&RunOutcome>,
    new: &RunLine,
    after: Option<&RunOutcome>,
) -> Option<RunComparison> {
    if let Some((old_total, new_total)) = old.batches.zip(new.batches) {
        let sightings = |row: Option<&RunOutcome>| row.and_then(|row| row.batches).unwrap_or_default();
        let (old_count, new_count) = (sightings(before), sightings(after));
        return RateComparison { old_count, old_total, new_count, new_total }.compare();
    }
    let runs = |line: &RunLine, row: Option<&RunOutcome>| -> Option<Vec<(u64, u64)>> {
        let parts = line.parts.as_ref().filter(|parts| parts.unit == PartUnit::Run)?;
        let none = vec![0; parts.instances.len()];
        let counts = row.map_or(&none, |row| &row.parts);
        Some(counts.iter().copied().zip(parts.instances.iter().copied()).collect())
    };
    compare_runs(&runs(old, before)?, &runs(new, after)?)
}

fn rate_changes(rates: &[RatePair<'_>], scatter: Scatter) -> Vec<Change> {
    let significances: Vec<_> = rates
        .iter()
        .map(|rate| rate.comparison.map(|comparison| scatter.deflate(comparison.significance)))
        .collect();
    let p_values: Vec<f64> = significances.iter().flatten().map(|significance| significance.p).collect();
    let mut corrected = holm(&p_values).into_iter();
    rates
        .iter()
        .zip(significances)
        .filter_map(|(rate, significance)| {
            let p = significance.and_then(|_| corrected.next());
            let (old_count, new_count) = rate.counts;
            let significant = p.is_some_and(|p| p < 1.0 - CONFIDENCE);
            let kind = match (old_count, new_count) {
                (0, _) => ChangeKind::NewOutcome,
                (_, 0) => ChangeKind::VanishedOutcome,
                _ if significant => ChangeKind::RateShift,
                _ => return None,
            };
            let mut change = new_change(kind, Some(rate.old), rate.new);
            change.outcome = Some(rate.outcome.clone());
            (change.old_count, change.new_count) = (old_count, new_count);
            (change.statistic, change.p) = (significance.map(|found| found.statistic), p);
            change.significant = significant;
            change.detail = is_weak(rate).then(|| "weak".to_owned());
            Some(change)
        })
        .collect()
}

/// Returns true if sequential consistency cannot produce the outcome.
fn is_weak(rate: &RatePair<'_>) -> bool {
    let is_weak_in = |line: &RunLine| {
        line.outcomes.iter().any(|o| o.weak && state::format_state(&o.state) == rate.outcome)
    };
    is_weak_in(rate.new) || is_weak_in(rate.old)
}
