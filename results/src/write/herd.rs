//! Logs in the format of herd7 and litmus7: one block `Test … Histogram … Witnesses … Observation … Time` per
//! verdict.
//!
//! A line `% … %` above each block names the test's id and the device. Registers are written as `0:r0`,
//! locations as `[x]`, and values that no execution produces as `unexpected[0]` and so on. States do not
//! include unresolved instances. A test that did not run or has no outcome has no block; a missing verdict
//! has only the line. Predictions use herd7's own form: `States` without counts.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::escape;
use crate::reason::Reason;
use crate::state::State;
use crate::wire::{CheckLine, CheckOutcome, Query, RaceWord, RunLine, UnexpectedValues, VerdictWord};
use crate::write::{CheckWriter, RunWriter};

/// Writer of verdicts, and of predictions in the format of herd7.
pub struct HerdWriter<W> {
    out: W,
}

impl<W: Write> HerdWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> HerdWriter<W> {
        HerdWriter { out }
    }
}

impl<W: Write> RunWriter for HerdWriter<W> {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.out.write_all(format_block(line).as_bytes())?;
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The question of a test in the terms of a log.
struct LogQuestion<'a> {
    /// `Allowed`, `Forbidden` or `Required`.
    expectation: &'static str,
    /// The question; `forall (true)` for a test without one.
    question: &'a str,
}

fn log_question(line: &RunLine) -> LogQuestion<'_> {
    parse_log_question(line.question.as_deref().unwrap_or("forall (true)"))
}

fn parse_log_question(question: &str) -> LogQuestion<'_> {
    let expectation = if question.starts_with('~') || question.starts_with("NOSOLUTION") {
        "Forbidden"
    } else if question.starts_with("forall") {
        "Required"
    } else {
        "Allowed"
    };
    LogQuestion { expectation, question }
}

/// Formats the block of a verdict; empty if the test has no outcome.
pub fn format_block(line: &RunLine) -> String {
    let states: Vec<(u64, bool, String)> = line
        .outcomes
        .iter()
        .filter(|outcome| outcome.count > 0)
        .map(|outcome| {
            let witness = outcome.witness.unwrap_or(line.question.is_none());
            (outcome.count, witness, format_values(&outcome.state))
        })
        .chain(line.unexpected.iter().filter(|u| u.count > 0).map(|u| (u.count, false, format_raw(u))))
        .collect();
    if line.has_reason(Reason::Missing) {
        return format!(
            "% {} on {}: missing: no verdict %\n\n",
            escape::escape_line(&line.id),
            escape::escape_line(&line.device)
        );
    }
    if line.verdict == VerdictWord::Skipped || states.is_empty() {
        return String::new();
    }
    let LogQuestion { expectation, question } = log_question(line);
    let sum = |wanted: bool| {
        states
            .iter()
            .filter(|(_, witness, _)| *witness == wanted)
            .fold(0, |sum: u64, state| sum.saturating_add(state.0))
    };
    let (positive, negative) = (sum(true), sum(false));
    let validated = match expectation {
        "Forbidden" => positive == 0,
        "Required" => negative == 0,
        _ => positive > 0,
    };
    let observed = observation_word(positive, negative);
    let name = log_name(line);
    let left_out = match line.not_executed {
        0 => String::new(),
        number => format!(": {number} instances were not executed"),
    };
    let title = format!(
        "% Results for {} on {}{left_out} %",
        escape::escape_line(&line.id),
        escape::escape_line(&line.device)
    );
    let rule = "%".repeat(title.chars().count());
    let mut text = format!("{rule}\n{title}\n{rule}\nTest {name} {expectation}\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "Histogram ({} states)", states.len());
    for (count, witness, values) in &states {
        let mark = if *witness { '*' } else { ':' };
        let _ = writeln!(text, "{count:<8}{mark}>{values}");
    }
    let _ = writeln!(text, "{}\n", if validated { "Ok" } else { "No" });
    let _ = writeln!(text, "Witnesses\nPositive: {positive}, Negative: {negative}");
    let is = if validated { "is" } else { "is NOT" };
    let _ = writeln!(text, "Condition {} {is} validated", escape::escape_line(question));
    if !line.hashes.test.is_empty() {
        let _ = writeln!(text, "Hash={}", to_word(&line.hashes.test));
    }
    let _ = writeln!(text, "Observation {name} {observed} {positive} {negative}");
    let _ = writeln!(text, "Time {name} {:.2}\n", line.seconds);
    text
}

/// Returns the test's name with the variant of the id: `MP+rel-acq@split`.
fn log_name(line: &RunLine) -> String {
    match line.id.split_once('@') {
        Some((_, variant)) => to_word(&format!("{}@{variant}", line.name)),
        None => to_word(&line.name),
    }
}

/// Formats text as one word: in a log a name ends at the next space.
fn to_word(text: &str) -> String {
    if text.is_empty() {
        return "_".to_owned();
    }
    escape::escape_line(text).chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect()
}

fn format_values(state: &State) -> String {
    if state.is_empty() {
        return " ".to_owned();
    }
    let words: Vec<String> =
        state.iter().map(|(name, value)| format!("{}={value};", herd_observable(name))).collect();
    words.join(" ")
}

/// Renames `P0:r0` to `0:r0` and `x` to `[x]`; a component `v[2]` is unchanged, as in herd7's tools.
fn herd_observable(name: &str) -> String {
    let safe: String = to_word(name).chars().map(|c| if matches!(c, ';' | '=') { '_' } else { c }).collect();
    let register = safe.strip_prefix('P').and_then(|rest| {
        let (thread, register) = rest.split_once(':')?;
        let numbered = !thread.is_empty() && thread.chars().all(|c| c.is_ascii_digit());
        numbered.then(|| format!("{thread}:{register}"))
    });
    register.unwrap_or_else(|| if safe.ends_with(']') { safe } else { format!("[{safe}]") })
}

fn format_raw(values: &UnexpectedValues) -> String {
    let words: Vec<String> =
        values.raw.iter().enumerate().map(|(index, value)| format!("unexpected[{index}]={value};")).collect();
    if words.is_empty() { " ".to_owned() } else { words.join(" ") }
}

impl<W: Write> CheckWriter for HerdWriter<W> {
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()> {
        self.out.write_all(format_prediction(line).as_bytes())?;
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Formats a prediction with one block per question: the allowed states without counts; `Positive` and
/// `Negative` count states.
///
/// A question without an answer, or with too many states to list, has only a line `% … %`.
pub fn format_prediction(line: &CheckLine) -> String {
    let name = to_word(&line.name);
    let states: Vec<&CheckOutcome> =
        line.outcomes.iter().filter(|outcome| outcome.allowed && !outcome.filtered).collect();
    let everything = [Query { text: "forall (true)".to_owned(), holds: Some(true), expected: None }];
    let queries = if line.queries.is_empty() { &everything[..] } else { &line.queries[..] };
    let mut text = String::new();
    for query in queries {
        let Some(holds) = query.holds else {
            let _ = writeln!(text, "% {name}: no answer in time %\n");
            continue;
        };
        if line.outcomes.is_empty() && line.executions.candidate > 0 {
            let holds = if holds { "holds" } else { "does not hold" };
            let _ = writeln!(
                text,
                "% {name}: `{}` {holds}; too many states to list %\n",
                escape::escape_line(&query.text)
            );
            continue;
        }
        let LogQuestion { expectation, question } = parse_log_question(&query.text);
        let count_witnesses =
            |wanted: bool| states.iter().filter(|outcome| outcome.witness == Some(wanted)).count();
        let (positive, negative) = match line.queries.as_slice() {
            [_] if line.outcomes.iter().all(|outcome| outcome.witness.is_some()) => {
                (count_witnesses(true), count_witnesses(false))
            }
            [] => (states.len(), 0),
            // Khronos queries may be about more than a state, such as races; one execution represents all.
            _ => {
                let found = holds != (expectation == "Forbidden");
                (usize::from(found), usize::from(!found))
            }
        };
        let _ = writeln!(text, "Test {name} {expectation}\nStates {}", states.len());
        for outcome in &states {
            let _ = writeln!(text, "{}", format_values(&outcome.state));
        }
        let _ = writeln!(text, "{}\nWitnesses", if holds { "Ok" } else { "No" });
        let _ = writeln!(text, "Positive: {positive} Negative: {negative}");
        if matches!(line.race, RaceWord::Racy | RaceWord::Unknown | RaceWord::NeedsInputs) {
            let _ =
                writeln!(text, "Flag {}", if line.race == RaceWord::Racy { "race" } else { "race-unknown" });
        }
        if line.uninitialised_read == Some(true) {
            let _ = writeln!(text, "Flag uninitialised-read");
        }
        let observed = observation_word(positive as u64, negative as u64);
        let seconds = line.micros as f64 / 1e6;
        let _ = writeln!(
            text,
            "Condition {}\nObservation {name} {observed} {positive} {negative}\nTime {name} {seconds:.2}\n",
            escape::escape_line(question)
        );
    }
    text
}

fn observation_word(positive: u64, negative: u64) -> &'static str {
    match (positive, negative) {
        (0, _) => "Never",
        (_, 0) => "Always",
        _ => "Sometimes",
    }
}
