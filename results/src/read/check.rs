//! Invariants of a run line that need no model: sums, bounds of measurements, and fields that contradict each other.

use std::collections::BTreeSet;

use super::replay;
use crate::escape;
use crate::judge::find_contradiction;
use crate::reason::Reason;
use crate::wire::{RunLine, ShaderRun, VerdictWord};

/// Upper limit of the instances in a second: more than any device executes.
pub const MAX_INSTANCES_PER_SECOND: f64 = 1e13;

/// Checks the invariants of a record.
///
/// # Errors
/// The first one that does not hold.
pub(super) fn check_invariants(line: &RunLine) -> Result<(), String> {
    check_counts(line)?;
    check_batches(line)?;
    check_parts(line)?;
    check_time(line)?;
    if let Some(drift) = &line.drift {
        let is_rate = |rate: f64| (0.0..=1.0).contains(&rate);
        let is_listed = line.outcomes.iter().any(|row| row.state == drift.state);
        if ![drift.earlier, drift.later, drift.p].into_iter().all(is_rate) || !is_listed {
            return Err("`drift` is not about rates of a listed outcome".to_owned());
        }
    }
    if let Some(hsa) = line.hsa.as_ref().filter(|hsa| hsa.passed > line.instances) {
        return Err(format!("{} of {} instances passed", hsa.passed, line.instances));
    }
    if let Some(shader) = &line.shader {
        check_contents(line, shader)?;
    }
    let mut states = BTreeSet::new();
    if let Some(twice) =
        line.outcomes.iter().map(|o| crate::state::format_state(&o.state)).find(|s| !states.insert(s.clone()))
    {
        return Err(format!("outcome `{}` occurs twice", escape::escape_line(&twice)));
    }
    if !replay::is_replay(line) {
        return Err(format!(
            "`replay` is not a command that only runs the test: {}",
            escape::escape_line(&line.replay)
        ));
    }
    if line.verdict == VerdictWord::Skipped {
        if line.reason.is_none() && line.detail.is_none() {
            return Err("skipped without a reason".to_owned());
        }
        if line.exercised || line.not_executed > 0 || line.seconds > 0.0 {
            return Err("a skipped test that was run".to_owned());
        }
    }
    let is_reason = |text: &str| Reason::from_name(text).is_some();
    if line.verdict == VerdictWord::Inconclusive && !line.reason.as_deref().is_none_or(is_reason) {
        return Err("inconclusive for an unknown reason".to_owned());
    }
    find_contradiction(line).map_or(Ok(()), Err)
}

fn check_counts(line: &RunLine) -> Result<(), String> {
    let counts = line.outcomes.iter().map(|outcome| outcome.count);
    let counts = counts.chain(line.unexpected.iter().map(|values| values.count)).chain([line.unresolved]);
    let sum = counts.into_iter().try_fold(0_u64, u64::checked_add);
    if sum != Some(line.instances) {
        let sum = sum.map_or_else(|| "more than fits 64 bits".to_owned(), |sum| sum.to_string());
        return Err(format!("`instances` is {}, but the counts add up to {sum}", line.instances));
    }
    if line.interleaved > line.instances {
        return Err(format!("{} interleaved of {} instances", line.interleaved, line.instances));
    }
    if let Some(spread) = &line.spread {
        let parts = spread.first.checked_add(spread.second);
        if parts.is_none_or(|parts| parts > line.instances) || spread.weak > spread.second {
            return Err(format!("the parts of `spread` have more than the {} instances", line.instances));
        }
    }
    Ok(())
}

/// Checks that every batch has an instance, and every instance a batch.
fn check_batches(line: &RunLine) -> Result<(), String> {
    let all = line.batches.unwrap_or(0);
    let max_batches = line.outcomes.iter().filter_map(|outcome| outcome.batches).max().unwrap_or(0);
    if max_batches > all || all > line.instances {
        return Err(format!("{max_batches} batches of {all}"));
    }
    let is_wrong = |batches: Option<u64>, count: u64| match batches {
        Some(batches) => batches > count || (batches == 0) != (count == 0),
        None => line.batches.is_some(),
    };
    if let Some(row) = line.outcomes.iter().find(|row| is_wrong(row.batches, row.count)) {
        return Err(format!("{} instances in {} batches", row.count, row.batches.unwrap_or(0)));
    }
    let others = line.unexpected.iter().map(|values| values.count).chain([line.unresolved]);
    let shown = line.outcomes.iter().filter_map(|row| row.batches).chain(others).fold(0, u64::saturating_add);
    if shown < all {
        return Err(format!("{all} batches, but outcomes in {shown}"));
    }
    Ok(())
}

/// Checks that the parts of an outcome add up to at most its count, and those of all outcomes to those of the run.
fn check_parts(line: &RunLine) -> Result<(), String> {
    let mut left = line.parts.as_ref().map_or(Vec::new(), |parts| parts.instances.clone());
    for row in line.outcomes.iter().filter(|row| !row.parts.is_empty()) {
        let sum = row.parts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if row.parts.len() != left.len() || sum > row.count {
            return Err(format!("{} instances in {} parts with {sum}", row.count, row.parts.len()));
        }
        for (left, count) in left.iter_mut().zip(&row.parts) {
            *left = left.checked_sub(*count).ok_or("more outcomes than instances in a part")?;
        }
    }
    Ok(())
}

/// Checks that the instances fit into the time. A record without a time claims no rate.
fn check_time(line: &RunLine) -> Result<(), String> {
    if !(line.seconds.is_finite() && line.seconds >= 0.0) {
        return Err(format!("`seconds` is {}, which is not a duration", line.seconds));
    }
    if line.seconds > 0.0 && line.instances as f64 > line.seconds * MAX_INSTANCES_PER_SECOND {
        return Err(format!("{} instances in {} s, which no device executes", line.instances, line.seconds));
    }
    Ok(())
}

/// Checks the observed contents of a shader's buffers.
fn check_contents(line: &RunLine, shader: &ShaderRun) -> Result<(), String> {
    let counts = shader.contents.iter().map(|content| content.count).chain([shader.others]);
    let sum = counts.fold(0_u64, u64::saturating_add);
    if sum > line.instances || (shader.contents.len() as u64) > shader.different {
        return Err(format!("{sum} contents of {} dispatches", line.instances));
    }
    let mut hashes = BTreeSet::new();
    if let Some(twice) = shader.contents.iter().find(|content| !hashes.insert(&content.hash)) {
        return Err(format!("contents `{}` occur twice", escape::escape_line(&twice.hash)));
    }
    let proves = matches!(line.verdict, VerdictWord::Conforms | VerdictWord::Violates);
    if proves && !shader.judged && shader.claim.is_none() {
        return Err("a verdict about contents that are not judged".to_owned());
    }
    Ok(())
}
