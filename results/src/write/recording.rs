//! Text output of the answers about a recording.

use std::collections::BTreeMap;

use crate::wire::{
    HazardLine, JudgementLine, RaceLine, RecordingRecord, RedundantBarrierRecord, UnjudgedCommand,
};

/// Other hazards of a barrier that the text lists.
const MAX_OTHERS: usize = 8;
/// Different redundant barriers that the text lists.
const MAX_BARRIERS: usize = 10;

/// Returns the first line of a hazard.
pub fn hazard_title(line: &HazardLine) -> String {
    let bytes =
        line.bytes.map_or(String::new(), |[from, to]| format!(", bytes {from} to {}", to.saturating_sub(1)));
    let lead = match (line.is_information, line.is_possible) {
        (true, _) => "if the host reads these bytes",
        (false, true) => "possible hazard",
        (false, false) => "hazard",
    };
    format!("{lead}: {}, {}{bytes}", line.kind.name(), line.resource)
}

/// Formats a hazard as text.
pub fn format_hazard(line: &HazardLine) -> String {
    let mut text = format!("{}\n", hazard_title(line));
    for (lead, command) in ["first", "then"].iter().zip(&line.commands) {
        let label = command.label.as_ref().map_or(String::new(), |label| format!(" in {label}"));
        text += &format!("    {lead} {} (command {}){label}\n", command.what, command.index);
    }
    if line.count > 1 {
        text += &format!("    {} pairs of such commands\n", line.count);
    }
    for other in line.also.iter().take(MAX_OTHERS) {
        let commands: Vec<String> =
            other.commands.iter().map(|one| format!("{} (command {})", one.what, one.index)).collect();
        text +=
            &format!("    also {}, {}: {}\n", other.kind.name(), other.resource, commands.join(", then "));
    }
    if line.also.len() > MAX_OTHERS {
        text += &format!("    and {} others: --format json\n", line.also.len() - MAX_OTHERS);
    }
    let place = if line.place.is_empty() { String::new() } else { format!("{}, ", line.place) };
    text += &format!("    missing: {}\n    fix: {place}{}\n", line.missing, line.fix);
    text
}

/// Formats the counts of a recording.
pub fn format_judgement(
    recording: &RecordingRecord,
    lines: &[RaceLine],
    judgement: &JudgementLine,
) -> String {
    let devices: Vec<&str> =
        recording.processes.iter().flat_map(|process| &process.devices).map(String::as_str).collect();
    let mut text = format!(
        "{} (different ones: {}) on {}\n",
        match recording.dispatches {
            1 => "1 dispatch".to_owned(),
            number => format!("{number} dispatches"),
        },
        recording.kinds.len(),
        if devices.is_empty() { "no device".to_owned() } else { devices.join(", ") }
    );
    let mut verdicts = BTreeMap::<String, u64>::new();
    for line in lines {
        *verdicts.entry(line.verdict.to_string()).or_default() += 1;
    }
    for (verdict, count) in &verdicts {
        text += &format!("  {count:>6}  {verdict}\n");
    }
    text += &format!("  {:>6}  hazards between commands\n", judgement.hazards);
    if judgement.possible_hazards > 0 {
        text += &format!("  {:>6}  possible hazards\n", judgement.possible_hazards);
    }
    text += &format!("  {:>6}  of {} commands judged", judgement.judged_commands, judgement.commands);
    if judgement.dispatches_by_equal_case > 0 {
        let count = judgement.dispatches_by_equal_case;
        text += &format!(", {count} by an equal dispatch: contents that decide accesses are equal");
    }
    text.push('\n');
    for line in &judgement.unjudged {
        text += &format!("not judged: {}\n", describe_unjudged(line));
    }
    let redundant = &judgement.redundant_barriers;
    if !redundant.is_empty() {
        text += &format!(
            "{} of {} barriers are redundant for these accesses:\n",
            redundant.len(),
            judgement.checked_barriers
        );
    }
    let mut groups: BTreeMap<&str, (usize, &RedundantBarrierRecord)> = BTreeMap::new();
    redundant.iter().for_each(|one| groups.entry(&one.what).or_insert((0, one)).0 += 1);
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    for (count, first) in groups.iter().take(MAX_BARRIERS) {
        text += &format!("    {count} × {}\n", describe_redundant(first));
    }
    if groups.len() > MAX_BARRIERS {
        text += &format!("    and {} others: --format json\n", groups.len() - MAX_BARRIERS);
    }
    text
}

/// Describes commands that were not judged.
pub fn describe_unjudged(line: &UnjudgedCommand) -> String {
    let UnjudgedCommand { what, why, count, first, .. } = line;
    let first = first.map_or(String::new(), |first| format!(" (first: command {first})"));
    format!("{count} × {what}{first}: {why}")
}

/// Describes a redundant barrier.
pub fn describe_redundant(barrier: &RedundantBarrierRecord) -> String {
    let label = barrier.label.as_ref().map_or(String::new(), |label| format!(" in {label}"));
    let count = if barrier.count > 1 { format!(", executed {} times", barrier.count) } else { String::new() };
    format!("{} (first: command {}){label}{count}", barrier.what, barrier.index)
}
