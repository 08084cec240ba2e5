//! CSV output: a header, then one row per outcome. It has no times, dates or host names, so that two reports
//! can be compared byte by byte.
//!
//! A test without outcomes (skipped or rejected) has one row with these columns empty. `kind` is `predicted`
//! for an outcome of the prediction and `unexpected` for other values. `hsa` and `class` apply to HSA tests,
//! whose lowered programs run on devices: whether HSA allows the outcome, and how its answer compares with
//! Vulkan's.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::show;
use crate::state;
use crate::wire::{CheckLine, LevelWord, RaceWord, RejectedLine, RunLine};
use crate::write::{CheckWriter, RunWriter};

/// Columns of a `check` report.
pub const CHECK_COLUMNS: [&str; 15] = [
    "id", "file", "name", "model", "race", "level", "query", "holds", "expected", "outcome", "allowed",
    "weak", "filtered", "error", "position",
];

/// Columns of a `run` report.
pub const RUN_COLUMNS: [&str; 19] = [
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
];

/// Writer of predictions.
pub struct CsvCheckWriter<W: Write> {
    table: Table<W>,
}

/// Writer of verdicts.
pub struct CsvRunWriter<W: Write> {
    table: Table<W>,
}

/// A CSV table whose header is written even without rows.
struct Table<W: Write> {
    out: csv::Writer<W>,
    header: Option<&'static [&'static str]>,
}

impl<W: Write> Table<W> {
    fn new(out: W, header: &'static [&'static str]) -> Table<W> {
        Table { out: csv::Writer::from_writer(out), header: Some(header) }
    }

    fn header(&mut self) -> io::Result<()> {
        match self.header.take() {
            Some(header) => self.out.write_record(header).map_err(io::Error::from),
            None => Ok(()),
        }
    }

    fn row<const N: usize>(&mut self, fields: [&str; N]) -> io::Result<()> {
        self.header()?;
        let shown = fields.map(|field| guard_formula(show::line(field)));
        self.out.write_record(shown.iter().map(|field| field.as_bytes())).map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.header()?;
        self.out.flush()
    }
}

/// Prevents spreadsheet programs from evaluating a field: a field that looks like a formula gets a leading
/// apostrophe. Numbers are unchanged.
fn guard_formula(field: Cow<'_, str>) -> Cow<'_, str> {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}").into() } else { field }
}

impl<W: Write> CsvCheckWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> CsvCheckWriter<W> {
        CsvCheckWriter { table: Table::new(out, &CHECK_COLUMNS) }
    }
}

impl<W: Write> CheckWriter for CsvCheckWriter<W> {
    fn answered(&mut self, line: &CheckLine) -> io::Result<()> {
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
        let holds = joined(&|q| optional(q.holds).to_owned());
        let expected = joined(&|q| optional(q.expected).to_owned());
        let mut row = |outcome: &str, allowed: &str, weak: &str, filtered: &str| {
            self.table.row([
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
            row(
                &state::text(&outcome.state),
                boolean(outcome.allowed),
                boolean(outcome.weak),
                boolean(outcome.filtered),
            )?;
        }
        if line.outcomes_listed == Some(false) && !line.outcomes.is_empty() {
            row("", "not listed", "", "")?;
        }
        self.table.flush()
    }

    fn rejected(&mut self, line: &RejectedLine) -> io::Result<()> {
        let position = format!("{}:{}", line.line, line.column);
        self.table.row([
            "",
            &line.file,
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            &line.error,
            &position,
        ])?;
        self.table.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.table.flush()
    }
}

impl<W: Write> CsvRunWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> CsvRunWriter<W> {
        CsvRunWriter { table: Table::new(out, &RUN_COLUMNS) }
    }
}

impl<W: Write> RunWriter for CsvRunWriter<W> {
    fn judged(&mut self, line: &RunLine) -> io::Result<()> {
        let reason = line.reason.as_deref().unwrap_or_default();
        let [instances, interleaved, not_executed, unresolved] =
            [line.instances, line.interleaved, line.not_executed, line.unresolved].map(|n| n.to_string());
        let class = line.hsa.as_ref().and_then(|hsa| hsa.class.as_deref()).unwrap_or_default();
        let mut row = |kind: &str, outcome: &str, count: &str, says: [&str; 4]| {
            self.table.row([
                &line.id,
                &line.name,
                &line.device,
                &line.model,
                line.verdict.text(),
                reason,
                boolean(line.exercised),
                &instances,
                &interleaved,
                &not_executed,
                &unresolved,
                kind,
                outcome,
                count,
                says[0],
                says[1],
                says[2],
                says[3],
                class,
            ])
        };
        if line.outcomes.is_empty() && line.unexpected.is_empty() {
            row("", "", "", [""; 4])?;
        }
        for outcome in &line.outcomes {
            let [allowed, weak, filtered] = [outcome.allowed, outcome.weak, outcome.filtered].map(boolean);
            let says = [allowed, weak, filtered, outcome.hsa.map(boolean).unwrap_or_default()];
            row("predicted", &state::text(&outcome.state), &outcome.count.to_string(), says)?;
        }
        for values in &line.unexpected {
            let raw: Vec<String> = values.raw.iter().map(u64::to_string).collect();
            row("unexpected", &raw.join(" "), &values.count.to_string(), [""; 4])?;
        }
        self.table.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.table.flush()
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn optional(value: Option<bool>) -> &'static str {
    match value {
        Some(value) => boolean(value),
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
