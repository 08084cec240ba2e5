//! What is wrong with a shader, as text.

use crate::wire::{FindingPlace, RaceLine};

/// An entry point with its findings.
pub fn text(line: &RaceLine) -> String {
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let mut text = format!("{}{entry}: {}\n", line.file, line.verdict);
    if !line.coverage.words.is_empty() {
        text += &format!("  for {}\n", line.coverage.words);
    }
    if let Some(why) = &line.why {
        text += &format!("  {why}\n");
    }
    for finding in &line.findings {
        text += &format!("  {}: {}\n", finding.kind, finding.message);
        text += &places(&finding.at);
        for (number, change) in finding.mend.iter().enumerate() {
            let lead = if number == 0 { "mend" } else { "and" };
            text += &format!("    {lead} {}\n", change.placed());
        }
    }
    text
}

/// The places of a finding, a line each.
pub fn places(at: &[FindingPlace]) -> String {
    let line = |place: &FindingPlace| {
        let access = place.access.as_deref().unwrap_or("at");
        let number = place.line.map_or(String::new(), |line| format!(":{line}"));
        format!("    {access} {}{number}\n", place.file.as_deref().unwrap_or(""))
    };
    at.iter().map(line).collect()
}
