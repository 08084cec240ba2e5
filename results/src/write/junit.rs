//! JUnit XML: one suite per device, one case per test.
//!
//! The statuses agree with the exit code. A test that makes it nonzero is a failure, or an error if it has no
//! verdict. Of the others, a test that conforms is a success, and the rest counts as skipped, with the reason.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::escape;
use crate::reason::Reason;
use crate::report::{OutcomeClass, histogram_bars};
use crate::wire::{RaceLine, RunLine, VerdictWord};
use crate::write::number::{format_count, format_probability};
use crate::write::race::format_race;
use crate::write::{ExitEffect, RunWriter};

/// Writer of verdicts; the document is written at the end.
pub struct JunitRunWriter<W> {
    out: W,
    suites: Vec<TestSuite>,
}

impl<W: Write> JunitRunWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> JunitRunWriter<W> {
        JunitRunWriter { out, suites: Vec::new() }
    }
}

impl<W: Write> RunWriter for JunitRunWriter<W> {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        let is_failure = match line.verdict {
            VerdictWord::Violates => true,
            VerdictWord::Inconclusive => {
                ![Reason::NotExercised, Reason::NoTime].iter().any(|why| line.has_reason(*why))
            }
            VerdictWord::Conforms | VerdictWord::Undefined | VerdictWord::Skipped => {
                line.broken_claim().is_some()
            }
        };
        self.write_with_effect(line, if is_failure { ExitEffect::Fails } else { ExitEffect::Accepted })
    }

    fn write_with_effect(&mut self, line: &RunLine, effect: ExitEffect) -> io::Result<()> {
        add_case(&mut self.suites, &line.device, test_case(line, effect));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut report = Report::new("vk-litmus");
        for mut suite in self.suites.drain(..) {
            let time = suite.test_cases.iter().filter_map(|case| case.time).sum();
            suite.set_time(time);
            report.add_test_suite(suite);
        }
        report.serialize(&mut self.out).map_err(io::Error::other)?;
        self.out.flush()
    }
}

/// Adds a case to the suite of a name.
fn add_case(suites: &mut Vec<TestSuite>, name: &str, case: TestCase) {
    let name = escape::escape_line(name).into_owned();
    let suite = suites.iter_mut().find(|suite| suite.name.as_str() == name);
    if let Some(suite) = suite {
        suite.add_test_case(case);
        return;
    }
    let mut suite = TestSuite::new(name);
    suite.add_test_case(case);
    suites.push(suite);
}

/// Writer of answers about shaders and recordings: one case per entry point, hazard, or group of commands without an answer.
#[derive(Default)]
pub struct JunitAnswerWriter {
    suites: Vec<TestSuite>,
}

/// The effect of an answer on the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStatus {
    /// It is a success.
    Success,
    /// It is a finding.
    Finding,
    /// Without an answer.
    NoAnswer,
    /// It is not a success, and is accepted.
    Accepted,
}

impl JunitAnswerWriter {
    /// Adds an answer with its details.
    pub fn add_answer(&mut self, suite: &str, name: &str, status: AnswerStatus, text: &str) {
        let mut result = match status {
            AnswerStatus::Success => TestCaseStatus::success(),
            AnswerStatus::Finding => TestCaseStatus::non_success(NonSuccessKind::Failure),
            AnswerStatus::NoAnswer => TestCaseStatus::non_success(NonSuccessKind::Error),
            AnswerStatus::Accepted => TestCaseStatus::skipped(),
        };
        if status != AnswerStatus::Success {
            result.set_message(escape::escape_line(text.lines().next().unwrap_or_default()));
            result.set_description(escape::escape_block(text));
        }
        // Two inputs of one entry point have two cases.
        let name = escape::escape_line(name);
        let known = self.suites.iter().find(|known| known.name.as_str() == suite);
        let is_same = |case: &&TestCase| case.name.as_str().split(" #").next() == Some(&*name);
        let count = known.map_or(0, |known| known.test_cases.iter().filter(is_same).count());
        let name = if count == 0 { name.into_owned() } else { format!("{name} #{}", count + 1) };
        let mut case = TestCase::new(name, result);
        if status == AnswerStatus::Success && !text.is_empty() {
            case.set_system_out(escape::escape_block(text));
        }
        case.set_classname(escape::escape_line(suite).into_owned());
        add_case(&mut self.suites, suite, case);
    }

    /// Adds the answer about an entry point.
    pub fn add_shader(&mut self, line: &RaceLine, status: AnswerStatus) {
        let name = if line.entry.is_empty() { "file" } else { &line.entry };
        // A success with findings has warnings about the compiler.
        let is_silent = status == AnswerStatus::Success && line.findings.is_empty();
        self.add_answer(&line.file, name, status, &if is_silent { String::new() } else { format_race(line) });
    }

    /// Returns the document.
    ///
    /// # Errors
    /// Returns the error of the XML writer.
    pub fn finish(self) -> io::Result<String> {
        let mut report = Report::new("vk-litmus");
        report.add_test_suites(self.suites);
        report.to_string().map_err(io::Error::other)
    }
}

fn test_case(line: &RunLine, effect: ExitEffect) -> TestCase {
    let escape_field =
        |what: &Option<String>| escape::escape_line(what.as_deref().unwrap_or_default()).into_owned();
    let (reason, detail) = (escape_field(&line.reason), escape_field(&line.detail));
    let is_unexercised = line.has_reason(Reason::NotExercised);
    let mut status = match (effect, line.verdict) {
        (ExitEffect::Fails, VerdictWord::Inconclusive)
            if !is_unexercised && line.broken_claim().is_none() =>
        {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        (ExitEffect::Fails, _) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (ExitEffect::Accepted, VerdictWord::Conforms) => TestCaseStatus::success(),
        (ExitEffect::Accepted, _) => TestCaseStatus::skipped(),
    };
    let mut message = line.verdict.name().to_owned();
    if let Some(claim) = line.broken_claim() {
        message = escape::escape_line(&claim.describe_failure()).into_owned();
    } else if effect == ExitEffect::Fails && line.verdict == VerdictWord::Conforms {
        message = "unexpected pass: a list of known failures names this test".to_owned();
    }
    for more in [&reason, &detail] {
        if !more.is_empty() && !message.ends_with(&more[..]) {
            message = format!("{message}: {more}");
        }
    }
    status.set_message(message);
    if line.verdict != VerdictWord::Conforms || effect == ExitEffect::Fails {
        status.set_type(line.verdict.name());
    }
    if matches!(line.verdict, VerdictWord::Violates | VerdictWord::Inconclusive) {
        status.set_description(format_histogram(line));
    }
    let mut case = TestCase::new(escape::escape_line(&line.id).into_owned(), status);
    let family = line.id.rsplit_once('/').map_or("tests", |(folder, _)| folder);
    case.set_classname(escape::escape_line(family).replace('/', "."));
    // A time that is not representable is written as zero.
    case.set_time(Duration::try_from_secs_f64(line.seconds).unwrap_or_default());
    if matches!(line.verdict, VerdictWord::Conforms | VerdictWord::Undefined) {
        case.set_system_out(format_histogram(line));
    }
    case
}

/// Formats the histogram and a command that repeats the test.
fn format_histogram(line: &RunLine) -> String {
    let mut text = format!(
        "model {}, {} instances, {} interleaved{}, {}exercised\n",
        escape::escape_line(&line.model),
        format_count(line.instances),
        format_count(line.interleaved),
        if line.not_executed > 0 {
            format!(", {} not executed", format_count(line.not_executed))
        } else {
            String::new()
        },
        if line.exercised { "" } else { "not " },
    );
    for bar in histogram_bars(line).iter().filter(|bar| bar.count > 0 || bar.kind == OutcomeClass::Weak) {
        text += &format!(
            "{:>13}  {:>9}  {:<12}  {}\n",
            format_count(bar.count),
            format_probability(bar.rate),
            bar.kind.name(),
            escape::escape_line(&bar.outcome)
        );
    }
    if !line.replay.is_empty() {
        text += &format!("again: {}\n", escape::escape_line(&line.replay));
    }
    text
}
