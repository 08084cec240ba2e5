//! The report of forward progress: a table of tests by placement, and the strongest unrefuted progress model
//! for each level of a device.

use std::collections::BTreeMap;

use crate::wire::{ProgressRun, RunLine, VerdictWord};
use crate::write::{TextLayout, columns};

/// Progress models from strong to weak; `hsa` and `obe` are incomparable.
const MODELS: [&str; 6] = ["fair", "lobe", "hsa-obe", "hsa", "obe", "unfair"];
/// Placements in column order.
const PLACEMENTS: [&str; 4] = ["plain", "round-robin", "chunked", "mixed"];
/// Names of the levels in reports.
const LEVELS: [(&str, &str); 3] = [
    ("qf", "workgroups of a dispatch"),
    ("wg", "subgroups of a workgroup"),
    ("sg", "invocations of a subgroup"),
];

/// Formats the table, the observed hangs and the models; empty if no line is about progress.
pub fn format_report(lines: &[RunLine], layout: TextLayout) -> String {
    let mut text = String::new();
    for device in device_names(lines) {
        let device_rows: Vec<(&RunLine, Option<&ProgressRun>)> = lines
            .iter()
            .filter(|line| line.device == device)
            .map(|line| (line, line.progress.as_ref()))
            .collect();
        if device_rows.iter().all(|(_, progress)| progress.is_none()) {
            continue;
        }
        text += &format_table(&device_rows, layout);
        text += "\n";
        text += &format_hangs(&device_rows);
        text += &format_models(device, &device_rows);
        text += "\n";
    }
    text
}

fn device_names(lines: &[RunLine]) -> Vec<&str> {
    let mut devices: Vec<&str> = Vec::new();
    for line in lines {
        if !devices.contains(&line.device.as_str()) {
            devices.push(&line.device);
        }
    }
    devices
}

type ProgressRows<'a> = [(&'a RunLine, Option<&'a ProgressRun>)];

/// Returns the test id without the placement.
fn test_id(line: &RunLine) -> &str {
    line.id.rsplit_once('@').map_or(line.id.as_str(), |(test, _)| test)
}

fn format_table(rows: &ProgressRows<'_>, layout: TextLayout) -> String {
    let mut table = columns::new_table(layout);
    let device = rows.first().map_or("", |(line, _)| line.device.as_str());
    let mut header = vec![format!("test ({device})"), "ends under".to_owned()];
    header.extend(PLACEMENTS.map(str::to_owned));
    table.set_header(header);
    let mut tests: Vec<&str> = Vec::new();
    for (line, _) in rows {
        if !tests.contains(&test_id(line)) {
            tests.push(test_id(line));
        }
    }
    for test in tests {
        let rows_of_test = || rows.iter().filter(move |(line, _)| test_id(line) == test);
        let ends = rows_of_test().find_map(|(_, progress)| *progress).map_or_else(String::new, |progress| {
            if progress.ends_under.is_empty() { "none".to_owned() } else { progress.ends_under.join(" ") }
        });
        let mut row = vec![test.to_owned(), ends];
        for placement in PLACEMENTS {
            let cell = rows_of_test().find(|(line, progress)| match progress {
                Some(progress) => progress.placement == placement,
                None => line.id.ends_with(&format!("@{placement}")),
            });
            row.push(cell.map_or_else(String::new, |(line, progress)| self::format_cell(line, *progress)));
        }
        table.add_row(row);
    }
    columns::format_table(&table, layout)
}

fn format_cell(line: &RunLine, progress: Option<&ProgressRun>) -> String {
    let Some(progress) = progress else {
        return match (&line.verdict, &line.reason) {
            (VerdictWord::Skipped, Some(reason)) => format!("skipped: {reason}"),
            (verdict, Some(reason)) => format!("{}: {reason}", verdict.name()),
            (verdict, None) => verdict.name().to_owned(),
        };
    };
    match (line.verdict, line.reason.as_deref()) {
        (VerdictWord::Inconclusive, Some("not exercised")) => {
            format!("ended {} of {}, no thread waited", progress.ended, progress.runs)
        }
        (VerdictWord::Inconclusive, Some(reason)) => reason.to_owned(),
        (VerdictWord::Undefined, _) => "undefined: racy".to_owned(),
        _ if progress.stuck > 0 => format!("STUCK {} of {}", progress.stuck, progress.runs),
        _ => format!("ended {} of {}", progress.ended, progress.runs),
    }
}

/// Formats the first hang of each row.
fn format_hangs(rows: &ProgressRows<'_>) -> String {
    let mut text = String::new();
    for (line, progress) in rows {
        let Some((progress, hang)) = progress.and_then(|p| Some((p, p.hangs.first()?))) else { continue };
        let refutes =
            if progress.refutes.is_empty() { "nothing".to_owned() } else { progress.refutes.join(", ") };
        text += &format!(
            "{}: stuck {} of {}, refutes {refutes}\n",
            crate::escape::escape_line(&line.id),
            progress.stuck,
            progress.runs
        );
        for thread in &hang.threads {
            let order = thread.order.map(|order| format!(", began as {order}")).unwrap_or_default();
            let place = thread.line.map(|line| format!(" at line {line}")).unwrap_or_default();
            text += &format!(
                "  {} {}{place}, {} turns{order}\n",
                thread.thread,
                thread.state.name(),
                thread.turns
            );
        }
    }
    if !text.is_empty() {
        text += "\n";
    }
    text
}

/// Formats the strongest unrefuted models of each level.
fn format_models(device: &str, rows: &ProgressRows<'_>) -> String {
    let mut text = String::new();
    for (level, name) in LEVELS {
        let level_rows: Vec<(&RunLine, &ProgressRun)> = rows
            .iter()
            .filter_map(|(line, progress)| Some((*line, (*progress)?)))
            .filter(|(_, progress)| progress.level == level)
            .collect();
        if level_rows.is_empty() {
            continue;
        }
        text += &format!("{device}, {name} ({level}): {}\n", format_strongest_models(&level_rows));
    }
    let all: Vec<(&RunLine, &ProgressRun)> =
        rows.iter().filter_map(|(line, progress)| Some((*line, (*progress)?))).collect();
    text += &format!("{device}, on every level: {}\n", format_strongest_models(&all));
    text
}

/// Formats the strongest models that no line refutes, and the tests that refute stronger ones.
pub fn format_strongest_models(rows: &[(&RunLine, &ProgressRun)]) -> String {
    let mut refuted: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for (line, progress) in rows {
        for model in &progress.refutes {
            let by =
                format!("{}, {} of {}", crate::escape::escape_line(&line.id), progress.stuck, progress.runs);
            let best = refuted.entry(model).or_insert((0, String::new()));
            if progress.stuck > best.0 {
                *best = (progress.stuck, by);
            }
        }
    }
    let runs: u32 = rows.iter().filter(|(line, _)| line.exercised).map(|(_, progress)| progress.runs).sum();
    let unrefuted: Vec<&str> = MODELS.into_iter().filter(|model| !refuted.contains_key(model)).collect();
    let first = match unrefuted.as_slice() {
        ["hsa", "obe", ..] => "hsa and obe".to_owned(),
        [first, ..] => (*first).to_owned(),
        [] => "none".to_owned(),
    };
    let by: Vec<String> = MODELS
        .into_iter()
        .filter_map(|model| refuted.get(model).map(|(_, by)| format!("{model} by {by}")))
        .collect();
    if runs == 0 {
        return "not exercised".to_owned();
    }
    let counted = format!("no counterexample in {runs} runs");
    if by.is_empty() {
        format!("{first} ({counted})")
    } else {
        format!("{first} ({counted}); refuted: {}", by.join("; "))
    }
}
