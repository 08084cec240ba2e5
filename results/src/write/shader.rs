//! Text output of shader runs: observed buffer contents with their counts.

use crate::show;
use crate::state;
use crate::wire::{RunLine, RunOutcome, ShaderRun, VerdictWord};
use crate::write::number::{count, plural, probability};

/// Largest number of contents printed.
const MAX_SHOWN: usize = 12;
/// Largest number of words printed per content.
const MAX_WORDS: usize = 8;

/// Formats the contents of a shader run; empty for other lines.
pub fn histogram(line: &RunLine) -> String {
    let Some(shader) = line.shader.as_ref().filter(|_| line.verdict != VerdictWord::Skipped) else {
        return String::new();
    };
    if line.instances == 0 {
        return String::new();
    }
    let mut text = format!(
        "{} on {}: {} in {} dispatches{}\n",
        show::line(&line.id),
        show::line(&line.device),
        plural(shader.different, "content"),
        count(line.instances),
        match (shader.judged, line.verdict) {
            (true, _) => "",
            (false, VerdictWord::Undefined) => ", every content is allowed",
            (false, _) => ", not judged",
        },
    );
    text += &if shader.judged || shader.claim.is_some() {
        outcomes(line, shader)
    } else {
        contents(line, shader)
    };
    if let Some(why) = &shader.why {
        text += &format!("  {}\n", show::line(why));
    }
    text + "\n"
}

fn row(line: &RunLine, number: u64, what: &str) -> String {
    let rate = probability(number as f64 / line.instances.max(1) as f64);
    format!("  {:>13}  {rate:>9}  {what}\n", count(number))
}

/// Formats outcomes by their named values; used if contents are judged or claimed.
fn outcomes(line: &RunLine, shader: &ShaderRun) -> String {
    let mut rows: Vec<&RunOutcome> = line.outcomes.iter().filter(|outcome| outcome.count > 0).collect();
    rows.sort_by_key(|outcome| std::cmp::Reverse(outcome.count));
    let mut text = String::new();
    for outcome in rows.iter().take(MAX_SHOWN) {
        let mark = match (shader.judged, outcome.allowed, outcome.weak, outcome.witness) {
            (true, false, ..) => "  FORBIDDEN",
            (.., Some(false)) => "  assertion does not hold",
            (true, true, true, _) => "  weak",
            _ => "",
        };
        text += &row(line, outcome.count, &format!("{}{mark}", words(&state::text(&outcome.state))));
    }
    for unexpected in line.unexpected.iter().take(MAX_SHOWN) {
        let raw: Vec<String> = unexpected.raw.iter().map(u64::to_string).collect();
        text += &row(
            line,
            unexpected.count,
            &format!("{}  FORBIDDEN: no execution leaves this", words(&raw.join(" "))),
        );
    }
    text += &more(rows.len());
    let never = line.outcomes.iter().filter(|outcome| outcome.allowed && outcome.count == 0).count();
    if shader.judged && never > 0 {
        text += &format!("  allowed and never seen: {}\n", plural(never as u64, "content"));
    }
    text
}

/// Formats contents by their differences from the most frequent one.
fn contents(line: &RunLine, shader: &ShaderRun) -> String {
    let mut text = String::new();
    for (number, content) in shader.contents.iter().take(MAX_SHOWN).enumerate() {
        let from = if number == 0 { "changed by the dispatch" } else { "different from the first" };
        let what = match content.changed {
            Some(0) if number == 0 => "as before the dispatch".to_owned(),
            Some(changed) => {
                let named = words(&state::text(&content.differs));
                format!("{} {from}: {named}", plural(changed, "word"))
            }
            None => format!("contents {}", content.hash.get(..16).unwrap_or(&content.hash)),
        };
        text += &row(line, content.count, &what);
    }
    text += &more(shader.contents.len());
    if shader.others > 0 {
        text += &row(line, shader.others, "others, not distinguished");
    }
    text
}

/// Returns the first words of a line.
fn words(text: &str) -> String {
    let mut words = text.split(' ');
    let shown: Vec<&str> = words.by_ref().take(MAX_WORDS).collect();
    let more = if words.next().is_some() { " …" } else { "" };
    show::line(&format!("{}{more}", shown.join(" "))).into_owned()
}

fn more(rows: usize) -> String {
    match rows.checked_sub(MAX_SHOWN) {
        Some(more @ 1..) => format!("  and {} more\n", count(more as u64)),
        _ => String::new(),
    }
}
