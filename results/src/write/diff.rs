//! Text output of a comparison of two runs: new violations first.

use std::collections::BTreeMap;

use crate::escape;
use crate::number::plural;
use crate::statistics::Proportion;
use crate::wire::{Change, ChangeKind, DiffRecord, VerdictWord};
use crate::write::number::{format_count, format_probability};

/// Largest number of listed changes of one kind; violations are always listed.
const MAX_LISTED_CHANGES: usize = 40;

/// Formats a comparison.
pub fn format_diff(diff: &DiffRecord) -> String {
    let mut text = format_broken_rules(diff);
    text += &format!(
        "old: {}: {}\n",
        escape::escape_line(&diff.old.source),
        escape::escape_line(&diff.old.devices.join(", "))
    );
    text += &format!(
        "new: {}: {}\n",
        escape::escape_line(&diff.new.source),
        escape::escape_line(&diff.new.devices.join(", "))
    );
    let (verdicts, rates) = (plural(diff.compared as u64, "verdict"), plural(diff.rates as u64, "rate"));
    text += &format!("{verdicts} and {rates} compared");
    text += &match diff.scatter.filter(|scatter| scatter.scale > 1.0) {
        Some(scatter) => {
            format!(
                "; a common change inflates the statistics {:.1} times, which is corrected\n",
                scatter.scale
            )
        }
        None => "\n".to_owned(),
    };
    if diff.compared == 0 {
        text += "nothing is comparable: no test ran on one device in both runs\n";
    }
    if diff.not_comparable > 0 {
        text += &format!(
            "{} not comparable: rates differ between runs of one build; compare runs made with `--repeat 6`\n",
            plural(diff.not_comparable as u64, "rate")
        );
    }
    for kind in ChangeKind::ALL {
        text += &format_section(diff, kind);
    }
    text += &format_ids("tests only in the old run", &diff.only_old);
    text += &format_ids("tests only in the new run", &diff.only_new);
    if diff.changes.is_empty() && diff.only_old.is_empty() && diff.only_new.is_empty() {
        text += match (diff.compared, diff.not_comparable) {
            (0, _) => "",
            (_, 0) => "no changes\n",
            (_, _) => "no changes of verdicts\n",
        };
    }
    text
}

/// Formats the newly broken rules, most affected tests first.
fn format_broken_rules(diff: &DiffRecord) -> String {
    let mut broken: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut unnamed: Vec<&str> = Vec::new();
    let heading = if diff.compared == 0 { "BROKEN RULE in the new run" } else { "NEWLY BROKEN RULE" };
    for change in diff.changes.iter().filter(|change| change.kind == ChangeKind::NewViolation) {
        for rule in &change.rules {
            broken.entry(rule).or_default().push(&change.id);
        }
        if change.rules.is_empty() {
            unnamed.push(&change.id);
        }
    }
    let mut broken: Vec<(String, Vec<&str>)> =
        broken.into_iter().map(|(rule, tests)| (rule.to_owned(), tests)).collect();
    if !unnamed.is_empty() {
        broken.push(("an outcome that the model forbids".to_owned(), unnamed));
    }
    for (_, tests) in &mut broken {
        tests.dedup();
    }
    broken.sort_by_key(|(rule, tests)| (std::cmp::Reverse(tests.len()), rule.clone()));
    broken
        .iter()
        .map(|(rule, tests)| {
            let more = match tests.len() {
                1 => String::new(),
                number => format!(" and {} more", number - 1),
            };
            let first = tests.first().map(|id| escape::escape_line(id)).unwrap_or_default();
            format!("{heading}: {} (by {first}{more})\n", escape::escape_line(rule))
        })
        .collect()
}

fn format_section(diff: &DiffRecord, kind: ChangeKind) -> String {
    let mut changes: Vec<&Change> = diff.changes.iter().filter(|change| change.kind == kind).collect();
    if changes.is_empty() {
        return String::new();
    }
    let certain = changes.iter().filter(|change| change.significant).count();
    let mut text = format!("\n{}: {}", kind.name(), changes.len());
    if matches!(kind, ChangeKind::NewOutcome | ChangeKind::VanishedOutcome) {
        text += &format!(", {certain} of them significant");
        // Without repeated runs, nothing says whether an outcome is new: `--format json` lists those.
        let all = changes.len();
        changes.retain(|change| change.p.is_some());
        if changes.len() < all {
            text += &format!(", {} not comparable", all - changes.len());
        }
    }
    if kind == ChangeKind::OtherModel {
        // Omit tests whose verdict is the same under the changed model.
        changes.retain(|change| change.old_verdict != Some(change.new_verdict));
        text += &format!(", {} of them with another verdict", changes.len());
    }
    text.push('\n');
    let max_changes = if kind == ChangeKind::NewViolation { usize::MAX } else { MAX_LISTED_CHANGES };
    for change in changes.iter().take(max_changes) {
        text += &format!("  {}\n", format_change(change));
    }
    if changes.len() > max_changes {
        text += &format!("  and {} more\n", changes.len() - max_changes);
    }
    text
}

fn format_change(change: &Change) -> String {
    let place = format!("{} on {}", escape::escape_line(&change.id), escape::escape_line(&change.device));
    let detail = escape::escape_line(change.detail.as_deref().unwrap_or_default());
    match (&change.outcome, change.kind) {
        (Some(outcome), ChangeKind::NewViolation) => format!(
            "{place}: forbidden {}: {} of {} instances{}",
            escape::escape_line(outcome),
            format_count(change.new_count),
            format_count(change.new_instances),
            format_old_verdict(change)
        ),
        (Some(outcome), _) => {
            let rate = |count, total| format_probability(Proportion::new(count, total).rate());
            format!(
                "{place}: {}{}: {} of {} ({}) -> {} of {} ({}), {}",
                escape::escape_line(outcome),
                if detail.is_empty() { String::new() } else { format!(" ({detail})") },
                format_count(change.old_count),
                format_count(change.old_instances),
                rate(change.old_count, change.old_instances),
                format_count(change.new_count),
                format_count(change.new_instances),
                rate(change.new_count, change.new_instances),
                format_significance(change)
            )
        }
        (None, _) => {
            let old = change.old_verdict.map_or("absent", VerdictWord::name);
            let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
            format!("{place}: {old} -> {}{detail}", change.new_verdict.name())
        }
    }
}

fn format_old_verdict(change: &Change) -> String {
    match change.old_verdict {
        None => "; the test is new".to_owned(),
        Some(VerdictWord::Violates) => "; another one was seen before".to_owned(),
        Some(verdict) => {
            format!("; was {} in {} instances", verdict.name(), format_count(change.old_instances))
        }
    }
}

fn format_significance(change: &Change) -> String {
    let (Some(statistic), Some(p)) = (change.statistic, change.p) else {
        return "not comparable".to_owned();
    };
    let p = if p < 1e-300 {
        "p below 1e-300".to_owned()
    } else if p < 0.001 {
        format!("p = {p:.1e}")
    } else {
        format!("p = {p:.3}")
    };
    let label = if change.significant { "significant" } else { "may be chance" };
    format!("{label} (statistic {statistic:.1}, {p})")
}

fn format_ids(heading: &str, ids: &[String]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{heading}: {}\n", ids.len());
    for id in ids.iter().take(MAX_LISTED_CHANGES) {
        text += &format!("  {}\n", escape::escape_line(id));
    }
    if ids.len() > MAX_LISTED_CHANGES {
        text += &format!("  and {} more\n", ids.len() - MAX_LISTED_CHANGES);
    }
    text
}
