//! Text output of the `race` command.

use super::change::describe_placed_change;
use crate::wire::{FindingPlace, RaceLine};

/// Formats an entry point with its findings.
pub fn format_race(line: &RaceLine) -> String {
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let mut text = format!("{}{entry}: {}\n", line.file, line.headline());
    if !line.coverage.words.is_empty() {
        text += &format!("  for {}\n", line.coverage.words);
    }
    if let Some(why) = &line.why {
        text += &format!("  {why}\n");
    }
    for needed in &line.needs {
        text += &format!("  {}\n", needed.to_sentence());
    }
    if let Some(element) = &line.order_dependent {
        text += &format!("  order-dependent: {element}\n");
    }
    for finding in &line.findings {
        text += &format!("  {}: {}\n", finding.kind, finding.message);
        text += &format_places(&finding.at);
        for (number, change) in finding.changes().iter().enumerate() {
            let lead = if number == 0 { "fix" } else { "and" };
            text += &format!("    {lead} {}\n", describe_placed_change(change));
        }
    }
    for lint in &line.lints {
        text += &format!("  {}: {}\n", lint.kind, lint.message);
        text += &format_places(&lint.at);
    }
    text
}

/// Formats the positions of a finding, one per line.
pub fn format_places(at: &[FindingPlace]) -> String {
    let line = |place: &FindingPlace| {
        let access = place.access.as_deref().unwrap_or("at");
        let number = place.line.map_or(String::new(), |line| format!(":{line}"));
        format!("    {access} {}{number}\n", place.file.as_deref().unwrap_or(""))
    };
    at.iter().map(line).collect()
}
