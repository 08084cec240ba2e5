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
pub fn report(lines: &[RunLine], layout: TextLayout) -> String {
    let mut text = String::new();
    for device in devices(lines) {
        let own: Vec<(&RunLine, Option<&ProgressRun>)> = lines
            .iter()
            .filter(|line| line.device == device)
            .map(|line| (line, line.progress.as_ref()))
            .collect();
        if own.iter().all(|(_, progress)| progress.is_none()) {
            continue;
        }
        text += &table(&own, layout);
        text += "\n";
        text += &hangs(&own);
        text += &models(device, &own);
        text += "\n";
    }
    text
}

fn devices(lines: &[RunLine]) -> Vec<&str> {
    let mut devices: Vec<&str> = Vec::new();
    for line in lines {
        if !devices.contains(&line.device.as_str()) {
            devices.push(&line.device);
        }
    }
    devices
}

type Rows<'a> = [(&'a RunLine, Option<&'a ProgressRun>)];

/// Returns the test id without the placement.
fn test_of(line: &RunLine) -> &str {
    line.id.rsplit_once('@').map_or(line.id.as_str(), |(test, _)| test)
}

fn table(rows: &Rows<'_>, layout: TextLayout) -> String {
    let mut table = columns::table(layout);
    let device = rows.first().map_or("", |(line, _)| line.device.as_str());
    let mut header = vec![format!("test ({device})"), "ends under".to_owned()];
    header.extend(PLACEMENTS.map(str::to_owned));
    table.set_header(header);
    let mut tests: Vec<&str> = Vec::new();
    for (line, _) in rows {
        if !tests.contains(&test_of(line)) {
            tests.push(test_of(line));
        }
    }
    for test in tests {
        let of_test = || rows.iter().filter(move |(line, _)| test_of(line) == test);
        let ends = of_test().find_map(|(_, progress)| *progress).map_or_else(String::new, |progress| {
            if progress.ends_under.is_empty() { "none".to_owned() } else { progress.ends_under.join(" ") }
        });
        let mut row = vec![test.to_owned(), ends];
        for placement in PLACEMENTS {
            let cell = of_test().find(|(line, progress)| match progress {
                Some(progress) => progress.placement == placement,
                None => line.id.ends_with(&format!("@{placement}")),
            });
            row.push(cell.map_or_else(String::new, |(line, progress)| self::cell(line, *progress)));
        }
        table.add_row(row);
    }
    columns::text(&table, layout)
}

fn cell(line: &RunLine, progress: Option<&ProgressRun>) -> String {
    let Some(progress) = progress else {
        return match (&line.verdict, &line.reason) {
            (VerdictWord::Skipped, Some(reason)) => format!("skipped: {reason}"),
            (verdict, Some(reason)) => format!("{}: {reason}", verdict.text()),
            (verdict, None) => verdict.text().to_owned(),
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
fn hangs(rows: &Rows<'_>) -> String {
    let mut text = String::new();
    for (line, progress) in rows {
        let Some((progress, hang)) = progress.and_then(|p| Some((p, p.hangs.first()?))) else { continue };
        let refutes =
            if progress.refutes.is_empty() { "nothing".to_owned() } else { progress.refutes.join(", ") };
        text += &format!(
            "{}: stuck {} of {}, refutes {refutes}\n",
            crate::show::line(&line.id),
            progress.stuck,
            progress.runs
        );
        for thread in &hang.threads {
            let order = thread.order.map(|order| format!(", began as {order}")).unwrap_or_default();
            let place = thread.line.map(|line| format!(" at line {line}")).unwrap_or_default();
            text += &format!(
                "  {} {}{place}, {} turns{order}\n",
                thread.thread,
                thread.state.text(),
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
fn models(device: &str, rows: &Rows<'_>) -> String {
    let mut text = String::new();
    for (level, name) in LEVELS {
        let own: Vec<(&RunLine, &ProgressRun)> = rows
            .iter()
            .filter_map(|(line, progress)| Some((*line, (*progress)?)))
            .filter(|(_, progress)| progress.level == level)
            .collect();
        if own.is_empty() {
            continue;
        }
        text += &format!("{device}, {name} ({level}): {}\n", strongest(&own));
    }
    let all: Vec<(&RunLine, &ProgressRun)> =
        rows.iter().filter_map(|(line, progress)| Some((*line, (*progress)?))).collect();
    text += &format!("{device}, on every level: {}\n", strongest(&all));
    text
}

/// Formats the strongest models that no line refutes, and the tests that refute stronger ones.
pub fn strongest(rows: &[(&RunLine, &ProgressRun)]) -> String {
    let mut refuted: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for (line, progress) in rows {
        for model in &progress.refutes {
            let by = format!("{}, {} of {}", crate::show::line(&line.id), progress.stuck, progress.runs);
            let best = refuted.entry(model).or_insert((0, String::new()));
            if progress.stuck > best.0 {
                *best = (progress.stuck, by);
            }
        }
    }
    let runs: u32 = rows.iter().filter(|(line, _)| line.exercised).map(|(_, progress)| progress.runs).sum();
    let standing: Vec<&str> = MODELS.into_iter().filter(|model| !refuted.contains_key(model)).collect();
    let first = match standing.as_slice() {
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
