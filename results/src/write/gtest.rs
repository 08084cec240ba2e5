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
pub fn name(id: &str) -> String {
    let mut name = format!("{SUITE}.");
    for c in id.chars() {
        if c.is_whitespace() || crate::show::acts(c) || ":*?%".contains(c) {
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
pub fn list<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    let mut suites: Vec<(String, Vec<String>)> = Vec::new();
    for id in ids {
        let name = name(id);
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
pub enum GtestEnd {
    /// `OK`.
    Ok,
    /// `FAILED`.
    Failed,
    /// `SKIPPED`.
    Skipped,
}

/// Maps a verdict to the protocol, which has no word for an inconclusive test: one that races or was not
/// exercised is skipped. Under `strict`, one that was not exercised fails.
pub fn ended(line: &RunLine, standing: &Triage, strict: bool) -> GtestEnd {
    if standing.is_unmet() {
        return GtestEnd::Failed;
    }
    match Status::of(line) {
        Status::Skip => GtestEnd::Skipped,
        _ if standing.is_excused() => GtestEnd::Ok,
        Status::Pass if line.verdict == VerdictWord::Undefined => GtestEnd::Skipped,
        Status::Pass => GtestEnd::Ok,
        Status::Warn if !strict => GtestEnd::Skipped,
        Status::Warn | Status::Fail | Status::Crash | Status::Timeout | Status::Missing => GtestEnd::Failed,
    }
}

/// A finished test.
#[derive(Clone, Debug)]
pub struct GtestCase {
    /// Test id.
    pub id: String,
    /// Its result.
    pub ended: GtestEnd,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Explanations, one per line.
    pub message: Vec<String>,
}

/// Classifies a verdict by the expectation files.
pub type TriageFn<'a> = Box<dyn Fn(&RunLine) -> Triage + 'a>;

/// Writer of the console protocol.
pub struct Gtest<'a, W> {
    out: W,
    standing: TriageFn<'a>,
    strict: bool,
    running: Option<String>,
    cases: Vec<GtestCase>,
}

impl<'a, W: Write> Gtest<'a, W> {
    /// Creates a writer to `out`. Under `strict`, a test that was not exercised fails.
    pub fn new(out: W, standing: TriageFn<'a>, strict: bool) -> Gtest<'a, W> {
        Gtest { out, standing, strict, running: None, cases: Vec::new() }
    }

    /// Returns the finished tests.
    pub fn cases(&self) -> &[GtestCase] {
        &self.cases
    }

    fn below(&mut self, word: &str, ended: GtestEnd) -> io::Result<usize> {
        let names: Vec<String> =
            self.cases.iter().filter(|case| case.ended == ended).map(|case| name(&case.id)).collect();
        if !names.is_empty() {
            writeln!(self.out, "[  {word} ] {}, listed below:", tests(names.len()))?;
            for name in &names {
                writeln!(self.out, "[  {word} ] {name}")?;
            }
        }
        Ok(names.len())
    }
}

/// Formats `1 test`, `2 tests`.
fn tests(number: usize) -> String {
    format!("{number} test{}", if number == 1 { "" } else { "s" })
}

fn milliseconds(seconds: f64) -> u64 {
    // The cast saturates, and seconds are never negative.
    (seconds * 1000.0).round() as u64
}

/// Returns explanations of a verdict for readers of the log.
fn message(line: &RunLine, standing: &Triage) -> Vec<String> {
    let mut message = Vec::new();
    if line.verdict != VerdictWord::Conforms {
        let why = line.detail.as_deref().or(line.reason.as_deref());
        let reason = line.reason.as_deref().filter(|_| line.verdict == VerdictWord::Inconclusive);
        let mut text = format!("{} on {} under {}", line.verdict.text(), line.device, line.model);
        for part in [reason, why.filter(|why| Some(*why) != reason)].into_iter().flatten() {
            text += &format!(": {part}");
        }
        message.push(text);
    }
    if line.verdict == VerdictWord::Violates {
        for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0 && !outcome.allowed) {
            let state = crate::state::text(&outcome.state);
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
    message.extend(standing.describe(line));
    message
}

/// Replaces brackets, so that a line cannot be parsed as part of the protocol.
fn harmless(text: &str) -> Cow<'_, str> {
    match crate::show::line(text) {
        text if text.contains(['[', ']']) => text.replace('[', "(").replace(']', ")").into(),
        text => text,
    }
}

impl<W: Write> RunWriter for Gtest<'_, W> {
    fn begins(&mut self, ids: &[&str]) -> io::Result<()> {
        let number = tests(ids.len());
        writeln!(self.out, "[==========] Running {number} from 1 test suite.")?;
        writeln!(self.out, "[----------] {number} from {SUITE}")?;
        self.out.flush()
    }

    fn starts(&mut self, id: &str) -> io::Result<()> {
        if self.running.as_deref() == Some(id) {
            return Ok(());
        }
        self.running = Some(id.to_owned());
        writeln!(self.out, "[ RUN      ] {}", name(id))?;
        self.out.flush()
    }

    fn judged(&mut self, line: &RunLine) -> io::Result<()> {
        self.starts(&line.id)?;
        self.running = None;
        let standing = (self.standing)(line);
        let ended = ended(line, &standing, self.strict);
        let message = message(line, &standing);
        for text in &message {
            writeln!(self.out, "{}", harmless(text))?;
        }
        let word = match ended {
            GtestEnd::Ok => "[       OK ]",
            GtestEnd::Failed => "[  FAILED  ]",
            GtestEnd::Skipped => "[  SKIPPED ]",
        };
        writeln!(self.out, "{word} {} ({} ms)", name(&line.id), milliseconds(line.seconds))?;
        self.cases.push(GtestCase { id: line.id.clone(), ended, seconds: line.seconds, message });
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let total = milliseconds(self.cases.iter().map(|case| case.seconds).sum());
        let number = tests(self.cases.len());
        writeln!(self.out, "[----------] {number} from {SUITE} ({total} ms total)\n")?;
        writeln!(self.out, "[==========] {number} from 1 test suite ran. ({total} ms total)")?;
        let passed = self.cases.iter().filter(|case| case.ended == GtestEnd::Ok).count();
        writeln!(self.out, "[  PASSED  ] {}.", tests(passed))?;
        self.below("SKIPPED", GtestEnd::Skipped)?;
        let failed = self.below("FAILED ", GtestEnd::Failed)?;
        if failed > 0 {
            writeln!(self.out, "\n {failed} FAILED TEST{}", if failed == 1 { "" } else { "S" })?;
        }
        self.out.flush()
    }
}

/// Formats the XML file of `--gtest_output=xml`.
pub fn xml(cases: &[GtestCase]) -> String {
    let count = |ended| cases.iter().filter(|case| case.ended == ended).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let numbers = format!(
        r#"tests="{}" failures="{}" disabled="0" errors="0" skipped="{}" time="{seconds:.3}""#,
        cases.len(),
        count(GtestEnd::Failed),
        count(GtestEnd::Skipped),
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"AllTests\" {numbers}>\n  <testsuite name=\"{SUITE}\" {numbers}>\n"
    );
    for case in cases {
        let name = name(&case.id);
        let test = name.split_once('.').map_or(name.as_str(), |(_, test)| test);
        let result = if case.ended == GtestEnd::Skipped { "skipped" } else { "completed" };
        let _ = write!(
            text,
            "    <testcase name=\"{}\" status=\"run\" result=\"{result}\" time=\"{:.3}\" classname=\"{SUITE}\"",
            attribute(test),
            case.seconds
        );
        let message = case.message.join("\n");
        match case.ended {
            GtestEnd::Ok => text += " />\n",
            GtestEnd::Failed => {
                let _ = writeln!(
                    text,
                    ">\n      <failure message=\"{}\" type=\"\"></failure>\n    </testcase>",
                    attribute(&message)
                );
            }
            GtestEnd::Skipped => {
                let _ = writeln!(
                    text,
                    ">\n      <skipped message=\"{}\" />\n    </testcase>",
                    attribute(&message)
                );
            }
        }
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Escapes an attribute value. XML cannot represent most control characters, so they become `\u{…}`.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::show::block(text).chars() {
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
pub fn json(cases: &[GtestCase]) -> serde_json::Value {
    let count = |ended| cases.iter().filter(|case| case.ended == ended).count();
    let time = format!("{:.3}s", cases.iter().map(|case| case.seconds).sum::<f64>());
    let list: Vec<serde_json::Value> = cases
        .iter()
        .map(|case| {
            let name = name(&case.id);
            let mut value = json!({
                "name": name.split_once('.').map_or(name.as_str(), |(_, test)| test),
                "status": "RUN",
                "result": if case.ended == GtestEnd::Skipped { "SKIPPED" } else { "COMPLETED" },
                "time": format!("{:.3}s", case.seconds),
                "classname": SUITE,
            });
            let message = json!([{ "failure": case.message.join("\n"), "type": "" }]);
            let key = match case.ended {
                GtestEnd::Ok => None,
                GtestEnd::Failed => Some("failures"),
                GtestEnd::Skipped => Some("skipped"),
            };
            if let (Some(key), Some(object)) = (key, value.as_object_mut()) {
                object.insert(key.to_owned(), message);
            }
            value
        })
        .collect();
    json!({
        "tests": cases.len(), "failures": count(GtestEnd::Failed), "disabled": 0, "errors": 0, "time": time,
        "name": "AllTests",
        "testsuites": [{
            "name": SUITE, "tests": cases.len(), "failures": count(GtestEnd::Failed), "disabled": 0, "errors": 0,
            "time": time, "testsuite": list,
        }],
    })
}
