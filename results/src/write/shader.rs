//! Text output of shader runs: observed buffer contents with their counts.

use crate::escape;
use crate::state;
use crate::wire::{RunLine, RunOutcome, ShaderRun, VerdictWord};
use crate::write::number::{format_count, format_probability, plural};

/// Largest number of contents printed.
const MAX_LISTED_CONTENTS: usize = 12;
/// Largest number of words printed per content.
const MAX_WORDS: usize = 8;

/// Formats the contents of a shader run; empty for other lines.
pub fn format_histogram(line: &RunLine) -> String {
    let Some(shader) = line.shader.as_ref().filter(|_| line.verdict != VerdictWord::Skipped) else {
        return String::new();
    };
    if line.instances == 0 {
        return String::new();
    }
    let mut text = format!(
        "{} on {}: {} in {} dispatches{}\n",
        escape::escape_line(&line.id),
        escape::escape_line(&line.device),
        plural(shader.different, "content"),
        format_count(line.instances),
        match (shader.judged, line.verdict) {
            (true, _) => "",
            (false, VerdictWord::Undefined) => ", every content is allowed",
            (false, _) => ", not judged",
        },
    );
    text += &if shader.judged || shader.claim.is_some() {
        format_outcomes(line, shader)
    } else {
        format_contents(line, shader)
    };
    if let Some(why) = &shader.why {
        text += &format!("  {}\n", escape::escape_line(why));
    }
    if line.verdict == VerdictWord::Undefined {
        text += &format!(
            "  `vk-litmus race {}` prints source lines and fixes\n",
            escape::escape_line(&shader.file)
        );
    }
    text + "\n"
}

fn format_row(line: &RunLine, number: u64, what: &str) -> String {
    let rate = format_probability(number as f64 / line.instances.max(1) as f64);
    format!("  {:>13}  {rate:>9}  {what}\n", format_count(number))
}

/// Formats outcomes by their named values; used if contents are judged or claimed.
fn format_outcomes(line: &RunLine, shader: &ShaderRun) -> String {
    let mut rows: Vec<&RunOutcome> = line.outcomes.iter().filter(|outcome| outcome.count > 0).collect();
    rows.sort_by_key(|outcome| std::cmp::Reverse(outcome.count));
    let mut text = String::new();
    for outcome in rows.iter().take(MAX_LISTED_CONTENTS) {
        let mark = match (shader.judged, outcome.allowed, outcome.weak, outcome.witness) {
            (true, false, ..) => "  FORBIDDEN",
            (.., Some(false)) => "  assertion does not hold",
            (true, true, true, _) => "  weak",
            _ => "",
        };
        text += &format_row(
            line,
            outcome.count,
            &format!("{}{mark}", first_words(&state::format_state(&outcome.state))),
        );
    }
    for unexpected in line.unexpected.iter().take(MAX_LISTED_CONTENTS) {
        let raw: Vec<String> = unexpected.raw.iter().map(u64::to_string).collect();
        text += &format_row(
            line,
            unexpected.count,
            &format!("{}  FORBIDDEN: no execution leaves this", first_words(&raw.join(" "))),
        );
    }
    text += &format_more(rows.len());
    let unobserved = line.outcomes.iter().filter(|outcome| outcome.allowed && outcome.count == 0).count();
    if shader.judged && unobserved > 0 {
        text += &format!("  allowed and never seen: {}\n", plural(unobserved as u64, "content"));
    }
    text
}

/// Formats contents by their differences from the most frequent one.
fn format_contents(line: &RunLine, shader: &ShaderRun) -> String {
    let mut text = String::new();
    for (number, content) in shader.contents.iter().take(MAX_LISTED_CONTENTS).enumerate() {
        let from = if number == 0 { "changed by the dispatch" } else { "different from the first" };
        let what = match content.changed {
            Some(0) if number == 0 => "as before the dispatch".to_owned(),
            Some(changed) => {
                let named = first_words(&state::format_state(&content.differs));
                format!("{} {from}: {named}", plural(changed, "word"))
            }
            None => format!("contents {}", content.hash.get(..16).unwrap_or(&content.hash)),
        };
        text += &format_row(line, content.count, &what);
    }
    text += &format_more(shader.contents.len());
    if shader.others > 0 {
        text += &format_row(line, shader.others, "others, not distinguished");
    }
    text
}

/// Returns the first words of a line.
fn first_words(text: &str) -> String {
    let mut words = text.split(' ');
    let shown: Vec<&str> = words.by_ref().take(MAX_WORDS).collect();
    let more = if words.next().is_some() { " …" } else { "" };
    escape::escape_line(&format!("{}{more}", shown.join(" "))).into_owned()
}

fn format_more(rows: usize) -> String {
    match rows.checked_sub(MAX_LISTED_CONTENTS) {
        Some(more @ 1..) => format!("  and {} more\n", format_count(more as u64)),
        _ => String::new(),
    }
}
