//! CSV output: a header, then one row per outcome. It has no times, dates or host names, so that two reports
//! can be compared byte by byte.
//!
//! A test without outcomes (skipped or rejected) has one row with these columns empty. `kind` is `predicted`
//! for an outcome of the prediction and `unexpected` for other values. `hsa` and `class` apply to HSA tests,
//! whose lowered programs run on devices: whether HSA allows the outcome, and how its answer compares with
//! Vulkan's. `broken` is the number of dispatches of a shader that broke its assertion or the expectations of its script.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::escape;
use crate::state;
use crate::wire::{CheckLine, LevelWord, RaceWord, RejectedLine, RunLine};
use crate::write::{CheckWriter, RunWriter};

/// Columns of a `check` report.
pub const CHECK_COLUMNS: [&str; 15] = [
    "id", "file", "name", "model", "race", "level", "query", "holds", "expected", "outcome", "allowed",
    "weak", "filtered", "error", "position",
];

/// Columns of a `run` report.
pub const RUN_COLUMNS: [&str; 20] = [
    "id",
    "name",
    "device",
    "model",
    "verdict",
    "reason",
    "exercised",
    "instances",
    "interleaved",
    "not_executed",
    "unresolved",
    "kind",
    "outcome",
    "count",
    "allowed",
    "weak",
    "filtered",
    "hsa",
    "class",
    "broken",
];

/// Writer of a table whose header is written even without rows.
pub struct CsvWriter<W: Write> {
    out: csv::Writer<W>,
    header: Option<&'static [&'static str]>,
}

impl<W: Write> CsvWriter<W> {
    /// Creates a writer of predictions to `out`.
    pub fn for_predictions(out: W) -> CsvWriter<W> {
        CsvWriter { out: csv::Writer::from_writer(out), header: Some(&CHECK_COLUMNS) }
    }

    /// Creates a writer of verdicts to `out`.
    pub fn for_verdicts(out: W) -> CsvWriter<W> {
        CsvWriter { out: csv::Writer::from_writer(out), header: Some(&RUN_COLUMNS) }
    }

    fn write_header(&mut self) -> io::Result<()> {
        match self.header.take() {
            Some(header) => self.out.write_record(header).map_err(io::Error::from),
            None => Ok(()),
        }
    }

    fn write_row<const N: usize>(&mut self, fields: [&str; N]) -> io::Result<()> {
        self.write_header()?;
        let shown = fields.map(|field| guard_formula(escape::escape_line(field)));
        self.out.write_record(shown.iter().map(|field| field.as_bytes())).map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_header()?;
        self.out.flush()
    }
}

/// Prevents spreadsheet programs from evaluating a field: a field that looks like a formula gets a leading
/// apostrophe. Numbers are unchanged.
fn guard_formula(field: Cow<'_, str>) -> Cow<'_, str> {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}").into() } else { field }
}

impl<W: Write> CheckWriter for CsvWriter<W> {
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()> {
        let race = match line.race {
            RaceWord::Free => "free",
            RaceWord::Racy => "racy",
            RaceWord::Unknown => "unknown",
            RaceWord::NeedsInputs => "needs-inputs",
            RaceWord::NotDefined => "",
        };
        let level = match line.level {
            None => "",
            Some(LevelWord::Value) => "value",
            Some(LevelWord::Program) => "program",
        };
        let joined = |field: &dyn Fn(&crate::wire::Query) -> String| {
            line.queries.iter().map(field).collect::<Vec<_>>().join("; ")
        };
        let query = joined(&|q| q.text.clone());
        let holds = joined(&|q| format_optional_bool(q.holds).to_owned());
        let expected = joined(&|q| format_optional_bool(q.expected).to_owned());
        let mut row = |outcome: &str, allowed: &str, weak: &str, filtered: &str| {
            self.write_row([
                &line.id,
                &line.file,
                &line.name,
                &line.model,
                race,
                level,
                &query,
                &holds,
                &expected,
                outcome,
                allowed,
                weak,
                filtered,
                "",
                "",
            ])
        };
        if line.outcomes.is_empty() {
            row("", "", "", "")?;
        }
        for outcome in &line.outcomes {
            // Longer runs than those within the bound may show the outcome.
            let is_known = outcome.allowed || line.cut == 0;
            row(
                &state::format_state(&outcome.state),
                format_optional_bool(is_known.then_some(outcome.allowed)),
                format_optional_bool(is_known.then_some(outcome.weak)),
                format_bool(outcome.filtered),
            )?;
        }
        if line.outcomes_listed == Some(false) && !line.outcomes.is_empty() {
            row("", "not listed", "", "")?;
        }
        self.flush()
    }

    fn write_rejected(&mut self, line: &RejectedLine) -> io::Result<()> {
        let position = format!("{}:{}", line.line, line.column);
        let mut row = [""; CHECK_COLUMNS.len()];
        [row[1], row[13], row[14]] = [&line.file, &line.error, &position];
        self.write_row(row)?;
        self.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl<W: Write> RunWriter for CsvWriter<W> {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        let reason = line.reason.as_deref().unwrap_or_default();
        let [instances, interleaved, not_executed, unresolved] =
            [line.instances, line.interleaved, line.not_executed, line.unresolved].map(|n| n.to_string());
        let class = line.hsa.as_ref().and_then(|hsa| hsa.class.as_deref()).unwrap_or_default();
        let claim = line.shader.as_ref().and_then(|shader| shader.claim.as_ref());
        let broken = claim.map_or(String::new(), |claim| claim.broken.to_string());
        let mut row = |kind: &str, outcome: &str, count: &str, flags: [&str; 4]| {
            self.write_row([
                &line.id,
                &line.name,
                &line.device,
                &line.model,
                line.verdict.name(),
                reason,
                format_bool(line.exercised),
                &instances,
                &interleaved,
                &not_executed,
                &unresolved,
                kind,
                outcome,
                count,
                flags[0],
                flags[1],
                flags[2],
                flags[3],
                class,
                &broken,
            ])
        };
        if line.outcomes.is_empty() && line.unexpected.is_empty() {
            row("", "", "", [""; 4])?;
        }
        for outcome in &line.outcomes {
            let [allowed, weak, filtered] =
                [outcome.allowed, outcome.weak, outcome.filtered].map(format_bool);
            let allowed = if line.has_judged_outcomes() { allowed } else { "" };
            let flags = [allowed, weak, filtered, outcome.hsa.map(format_bool).unwrap_or_default()];
            row("predicted", &state::format_state(&outcome.state), &outcome.count.to_string(), flags)?;
        }
        for values in &line.unexpected {
            let raw: Vec<String> = values.raw.iter().map(u64::to_string).collect();
            row("unexpected", &raw.join(" "), &values.count.to_string(), [""; 4])?;
        }
        self.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

fn format_bool(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn format_optional_bool(value: Option<bool>) -> &'static str {
    match value {
        Some(value) => format_bool(value),
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_not_formulas() {
        let cases = [
            ("=1+2", "'=1+2"),
            ("+SUM(A1)", "'+SUM(A1)"),
            ("-x", "'-x"),
            ("@x", "'@x"),
            ("-1", "-1"),
            ("+1.5", "+1.5"),
            ("sb/SB", "sb/SB"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(guard_formula(text.into()), expected);
        }
    }
}
