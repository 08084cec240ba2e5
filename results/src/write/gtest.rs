//! Google Test output: the console protocol that test runners parse, and the XML and JSON files.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::json;

use crate::expectation::{Status, Triage};
use crate::wire::{RunLine, VerdictWord};
use crate::write::RunWriter;

/// Name of the test suite.
pub const SUITE: &str = "litmus";

/// Returns the Google Test name: the suite and the id, with separators of filters and lists percent-encoded.
/// The mapping is injective.
pub fn gtest_name(id: &str) -> String {
    let mut name = format!("{SUITE}.");
    for c in id.chars() {
        if c.is_whitespace() || crate::escape::needs_escape(c) || ":*?%".contains(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(name, "%{byte:02X}");
            }
        } else {
            name.push(c);
        }
    }
    name
}

/// Formats the list of tests as `--gtest_list_tests` does. Parsers take the text up to the last dot of a line
/// as the suite, so a name with dots is split at its last one.
pub fn format_test_list<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    let mut suites: Vec<(String, Vec<String>)> = Vec::new();
    for id in ids {
        let name = gtest_name(id);
        let (suite, test) = name.rsplit_once('.').unwrap_or((SUITE, &name));
        match suites.iter_mut().find(|(known, _)| known == suite) {
            Some((_, tests)) => tests.push(test.to_owned()),
            None => suites.push((suite.to_owned(), vec![test.to_owned()])),
        }
    }
    let mut text = String::new();
    for (suite, tests) in suites {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{suite}.");
        for test in tests {
            let _ = writeln!(text, "  {test}");
        }
    }
    text
}

/// The result words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GtestResult {
    /// `OK`.
    Ok,
    /// `FAILED`.
    Failed,
    /// `SKIPPED`.
    Skipped,
}

/// Maps a verdict to the protocol, which has no word for an inconclusive test: one that races or was not
/// exercised is skipped. Under `strict`, one that was not exercised fails.
pub fn gtest_result(line: &RunLine, triage: &Triage, strict: bool) -> GtestResult {
    if triage.is_unmet() {
        return GtestResult::Failed;
    }
    match Status::from_line(line) {
        Status::Skip => GtestResult::Skipped,
        _ if triage.is_excused() => GtestResult::Ok,
        Status::Pass if line.verdict == VerdictWord::Undefined => GtestResult::Skipped,
        Status::Pass => GtestResult::Ok,
        Status::Warn if !strict => GtestResult::Skipped,
        Status::Warn | Status::Fail | Status::Crash | Status::Timeout | Status::Missing => {
            GtestResult::Failed
        }
    }
}

/// A finished test.
#[derive(Clone, Debug)]
pub struct GtestCase {
    /// Test id.
    pub id: String,
    /// Its result.
    pub result: GtestResult,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Explanations, one per line.
    pub message: Vec<String>,
}

/// Classifies a verdict by the expectation files.
pub type TriageFn<'a> = Box<dyn Fn(&RunLine) -> Triage + 'a>;

/// Writer of the console protocol.
pub struct GtestWriter<'a, W> {
    out: W,
    triage: TriageFn<'a>,
    is_strict: bool,
    running: Option<String>,
    cases: Vec<GtestCase>,
}

impl<'a, W: Write> GtestWriter<'a, W> {
    /// Creates a writer to `out`. Under `strict`, a test that was not exercised fails.
    pub fn new(out: W, triage: TriageFn<'a>, strict: bool) -> GtestWriter<'a, W> {
        GtestWriter { out, triage, is_strict: strict, running: None, cases: Vec::new() }
    }

    /// Returns the finished tests.
    pub fn cases(&self) -> &[GtestCase] {
        &self.cases
    }

    fn write_list(&mut self, word: &str, result: GtestResult) -> io::Result<usize> {
        let names: Vec<String> =
            self.cases.iter().filter(|case| case.result == result).map(|case| gtest_name(&case.id)).collect();
        if !names.is_empty() {
            writeln!(self.out, "[  {word} ] {}, listed below:", format_test_count(names.len()))?;
            for name in &names {
                writeln!(self.out, "[  {word} ] {name}")?;
            }
        }
        Ok(names.len())
    }
}

/// Formats `1 test`, `2 tests`.
fn format_test_count(number: usize) -> String {
    format!("{number} test{}", if number == 1 { "" } else { "s" })
}

fn to_milliseconds(seconds: f64) -> u64 {
    // The cast saturates, and seconds are never negative.
    (seconds * 1000.0).round() as u64
}

/// Returns explanations of a verdict for readers of the log.
fn describe_verdict(line: &RunLine, triage: &Triage) -> Vec<String> {
    let mut message = Vec::new();
    if line.verdict != VerdictWord::Conforms {
        let why = line.detail.as_deref().or(line.reason.as_deref());
        let reason = line.reason.as_deref().filter(|_| line.verdict == VerdictWord::Inconclusive);
        let mut text = format!("{} on {} under {}", line.verdict.name(), line.device, line.model);
        for part in [reason, why.filter(|why| Some(*why) != reason)].into_iter().flatten() {
            text += &format!(": {part}");
        }
        message.push(text);
    }
    if line.verdict == VerdictWord::Violates {
        for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0 && !outcome.allowed) {
            let state = crate::state::format_state(&outcome.state);
            message
                .push(format!("forbidden and seen {} of {} times: {state}", outcome.count, line.instances));
        }
        for unexpected in &line.unexpected {
            message.push(format!("corrupt values seen {} times: {:x?}", unexpected.count, unexpected.raw));
        }
        message.push(format!("again: {}", line.replay));
    }
    if line.verdict == VerdictWord::Conforms && line.not_executed > 0 {
        message.push(line.detail.clone().unwrap_or_else(|| format!("{} not executed", line.not_executed)));
    }
    message.extend(triage.describe(line));
    message
}

/// Replaces brackets, so that a line cannot be parsed as part of the protocol.
fn replace_brackets(text: &str) -> Cow<'_, str> {
    match crate::escape::escape_line(text) {
        text if text.contains(['[', ']']) => text.replace('[', "(").replace(']', ")").into(),
        text => text,
    }
}

impl<W: Write> RunWriter for GtestWriter<'_, W> {
    fn announce_tests(&mut self, ids: &[&str]) -> io::Result<()> {
        let number = format_test_count(ids.len());
        writeln!(self.out, "[==========] Running {number} from 1 test suite.")?;
        writeln!(self.out, "[----------] {number} from {SUITE}")?;
        self.out.flush()
    }

    fn announce_test(&mut self, id: &str) -> io::Result<()> {
        if self.running.as_deref() == Some(id) {
            return Ok(());
        }
        self.running = Some(id.to_owned());
        writeln!(self.out, "[ RUN      ] {}", gtest_name(id))?;
        self.out.flush()
    }

    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.announce_test(&line.id)?;
        self.running = None;
        let triage = (self.triage)(line);
        let result = gtest_result(line, &triage, self.is_strict);
        let message = describe_verdict(line, &triage);
        for text in &message {
            writeln!(self.out, "{}", replace_brackets(text))?;
        }
        let word = match result {
            GtestResult::Ok => "[       OK ]",
            GtestResult::Failed => "[  FAILED  ]",
            GtestResult::Skipped => "[  SKIPPED ]",
        };
        writeln!(self.out, "{word} {} ({} ms)", gtest_name(&line.id), to_milliseconds(line.seconds))?;
        self.cases.push(GtestCase { id: line.id.clone(), result, seconds: line.seconds, message });
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let total = to_milliseconds(self.cases.iter().map(|case| case.seconds).sum());
        let number = format_test_count(self.cases.len());
        writeln!(self.out, "[----------] {number} from {SUITE} ({total} ms total)\n")?;
        writeln!(self.out, "[==========] {number} from 1 test suite ran. ({total} ms total)")?;
        let passed = self.cases.iter().filter(|case| case.result == GtestResult::Ok).count();
        writeln!(self.out, "[  PASSED  ] {}.", format_test_count(passed))?;
        self.write_list("SKIPPED", GtestResult::Skipped)?;
        let failed = self.write_list("FAILED ", GtestResult::Failed)?;
        if failed > 0 {
            writeln!(self.out, "\n {failed} FAILED TEST{}", if failed == 1 { "" } else { "S" })?;
        }
        self.out.flush()
    }
}

/// Formats the XML file of `--gtest_output=xml`.
pub fn format_xml(cases: &[GtestCase]) -> String {
    let count = |result| cases.iter().filter(|case| case.result == result).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let numbers = format!(
        r#"tests="{}" failures="{}" disabled="0" errors="0" skipped="{}" time="{seconds:.3}""#,
        cases.len(),
        count(GtestResult::Failed),
        count(GtestResult::Skipped),
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"AllTests\" {numbers}>\n  <testsuite name=\"{SUITE}\" {numbers}>\n"
    );
    for case in cases {
        let name = gtest_name(&case.id);
        let test = name.split_once('.').map_or(name.as_str(), |(_, test)| test);
        let result = if case.result == GtestResult::Skipped { "skipped" } else { "completed" };
        let _ = write!(
            text,
            "    <testcase name=\"{}\" status=\"run\" result=\"{result}\" time=\"{:.3}\" classname=\"{SUITE}\"",
            escape_attribute(test),
            case.seconds
        );
        let message = case.message.join("\n");
        match case.result {
            GtestResult::Ok => text += " />\n",
            GtestResult::Failed => {
                let _ = writeln!(
                    text,
                    ">\n      <failure message=\"{}\" type=\"\"></failure>\n    </testcase>",
                    escape_attribute(&message)
                );
            }
            GtestResult::Skipped => {
                let _ = writeln!(
                    text,
                    ">\n      <skipped message=\"{}\" />\n    </testcase>",
                    escape_attribute(&message)
                );
            }
        }
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Escapes an attribute value. XML cannot represent most control characters, so they become `\u{…}`.
fn escape_attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::escape::escape_block(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped += "&#x0A;",
            '\t' => escaped += "&#x09;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Formats the JSON file of `--gtest_output=json`.
pub fn format_json(cases: &[GtestCase]) -> serde_json::Value {
    let count = |result| cases.iter().filter(|case| case.result == result).count();
    let time = format!("{:.3}s", cases.iter().map(|case| case.seconds).sum::<f64>());
    let list: Vec<serde_json::Value> = cases
        .iter()
        .map(|case| {
            let name = gtest_name(&case.id);
            let mut value = json!({
                "name": name.split_once('.').map_or(name.as_str(), |(_, test)| test),
                "status": "RUN",
                "result": if case.result == GtestResult::Skipped { "SKIPPED" } else { "COMPLETED" },
                "time": format!("{:.3}s", case.seconds),
                "classname": SUITE,
            });
            let message = json!([{ "failure": case.message.join("\n"), "type": "" }]);
            let key = match case.result {
                GtestResult::Ok => None,
                GtestResult::Failed => Some("failures"),
                GtestResult::Skipped => Some("skipped"),
            };
            if let (Some(key), Some(object)) = (key, value.as_object_mut()) {
                object.insert(key.to_owned(), message);
            }
            value
        })
        .collect();
    json!({
        "tests": cases.len(), "failures": count(GtestResult::Failed), "disabled": 0, "errors": 0, "time": time,
        "name": "AllTests",
        "testsuites": [{
            "name": SUITE, "tests": cases.len(), "failures": count(GtestResult::Failed), "disabled": 0, "errors": 0,
            "time": time, "testsuite": list,
        }],
    })
}
