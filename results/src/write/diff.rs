//! Text output of a comparison of two runs: new violations first.

use std::collections::BTreeMap;

use crate::show;
use crate::statistics::Proportion;
use crate::wire::{Change, ChangeKind, DiffRecord, VerdictWord};
use crate::write::number::{count, probability};

/// Largest number of listed changes of one kind; violations are always listed.
const MOST_CHANGES: usize = 40;

/// Formats a comparison.
pub fn text(diff: &DiffRecord) -> String {
    let mut text = rules(diff);
    text += &format!("old: {}: {}\n", show::line(&diff.old.source), show::line(&diff.old.devices.join(", ")));
    text += &format!("new: {}: {}\n", show::line(&diff.new.source), show::line(&diff.new.devices.join(", ")));
    text += &format!("{} verdicts and {} rates compared", diff.compared, diff.rates);
    text += &match diff.scatter {
        Some(scatter) if scatter.scale > 1.0 => {
            format!("; scheduling inflates the statistics {:.1} times, which is corrected\n", scatter.scale)
        }
        Some(_) => "; rates vary no more than those of independent instances\n".to_owned(),
        None => "; too few to estimate the effect of scheduling on rates: instances are assumed \
             independent\n"
            .to_owned(),
    };
    for kind in ChangeKind::ALL {
        text += &section(diff, kind);
    }
    text += &names("tests only in the old run", &diff.only_old);
    text += &names("tests only in the new run", &diff.only_new);
    if diff.changes.is_empty() && diff.only_old.is_empty() && diff.only_new.is_empty() {
        text += "no changes\n";
    }
    text
}

/// Formats the newly broken rules, most affected tests first.
fn rules(diff: &DiffRecord) -> String {
    let mut broken: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut unnamed: Vec<&str> = Vec::new();
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
            let first = tests.first().map(|id| show::line(id)).unwrap_or_default();
            format!("NEWLY BROKEN RULE: {} (by {first}{more})\n", show::line(rule))
        })
        .collect()
}

fn section(diff: &DiffRecord, kind: ChangeKind) -> String {
    let mut changes: Vec<&Change> = diff.changes.iter().filter(|change| change.kind == kind).collect();
    if changes.is_empty() {
        return String::new();
    }
    let certain = changes.iter().filter(|change| change.significant).count();
    let mut text = format!("\n{}: {}", kind.heading(), changes.len());
    if matches!(kind, ChangeKind::NewOutcome | ChangeKind::VanishedOutcome) {
        text += &format!(", {certain} of them significant");
    }
    if kind == ChangeKind::OtherModel {
        // Omit tests whose verdict is the same under the changed model.
        changes.retain(|change| change.old_verdict != Some(change.new_verdict));
        text += &format!(", {} of them with another verdict", changes.len());
    }
    text.push('\n');
    let most = if kind == ChangeKind::NewViolation { usize::MAX } else { MOST_CHANGES };
    for change in changes.iter().take(most) {
        text += &format!("  {}\n", line(change));
    }
    if changes.len() > most {
        text += &format!("  and {} more\n", changes.len() - most);
    }
    text
}

fn line(change: &Change) -> String {
    let place = format!("{} on {}", show::line(&change.id), show::line(&change.device));
    let detail = show::line(change.detail.as_deref().unwrap_or_default());
    match (&change.outcome, change.kind) {
        (Some(outcome), ChangeKind::NewViolation) => format!(
            "{place}: forbidden {}: {} of {} instances{}",
            show::line(outcome),
            count(change.new_count),
            count(change.new_instances),
            was(change)
        ),
        (Some(outcome), _) => {
            let rate = |count, total| probability(Proportion::new(count, total).rate());
            format!(
                "{place}: {}{}: {} of {} ({}) -> {} of {} ({}), {}",
                show::line(outcome),
                if detail.is_empty() { String::new() } else { format!(" ({detail})") },
                count(change.old_count),
                count(change.old_instances),
                rate(change.old_count, change.old_instances),
                count(change.new_count),
                count(change.new_instances),
                rate(change.new_count, change.new_instances),
                significance(change)
            )
        }
        (None, _) => {
            let old = change.old_verdict.map_or("absent", VerdictWord::text);
            let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
            format!("{place}: {old} -> {}{detail}", change.new_verdict.text())
        }
    }
}

fn was(change: &Change) -> String {
    match change.old_verdict {
        None => "; the test is new".to_owned(),
        Some(VerdictWord::Violates) => "; another one was seen before".to_owned(),
        Some(verdict) => format!("; was {} in {} instances", verdict.text(), count(change.old_instances)),
    }
}

fn significance(change: &Change) -> String {
    let (Some(statistic), Some(p)) = (change.statistic, change.p) else { return String::new() };
    let p = if p < 1e-300 {
        "p below 1e-300".to_owned()
    } else if p < 0.001 {
        format!("p = {p:.1e}")
    } else {
        format!("p = {p:.3}")
    };
    let says = if change.significant { "significant" } else { "may be chance" };
    format!("{says} (statistic {statistic:.1}, {p})")
}

fn names(heading: &str, ids: &[String]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{heading}: {}\n", ids.len());
    for id in ids.iter().take(MOST_CHANGES) {
        text += &format!("  {}\n", show::line(id));
    }
    if ids.len() > MOST_CHANGES {
        text += &format!("  and {} more\n", ids.len() - MOST_CHANGES);
    }
    text
}
