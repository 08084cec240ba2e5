//! JUnit XML: one suite per device, one case per test.
//!
//! A violation is a failure, and a test without a verdict an error. A test that was not exercised, races or
//! was skipped counts as skipped: none of these passed.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::escape;
use crate::report::{OutcomeClass, histogram_bars};
use crate::wire::{RunLine, VerdictWord};
use crate::write::RunWriter;
use crate::write::number::{format_count, format_probability};

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
        let device = escape::escape_line(&line.device).into_owned();
        let case = test_case(line);
        match self.suites.iter_mut().find(|suite| suite.name.as_str() == device) {
            Some(suite) => {
                suite.add_test_case(case);
            }
            None => {
                let mut suite = TestSuite::new(device);
                suite.add_test_case(case);
                self.suites.push(suite);
            }
        }
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

fn test_case(line: &RunLine) -> TestCase {
    let escape_field =
        |what: &Option<String>| escape::escape_line(what.as_deref().unwrap_or_default()).into_owned();
    let (reason, detail) = (escape_field(&line.reason), escape_field(&line.detail));
    let mut status = match (line.verdict, reason.as_str()) {
        (VerdictWord::Conforms, _) => TestCaseStatus::success(),
        (VerdictWord::Violates, _) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (VerdictWord::Inconclusive, reason) if reason != "not exercised" => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        (VerdictWord::Inconclusive | VerdictWord::Undefined | VerdictWord::Skipped, _) => {
            TestCaseStatus::skipped()
        }
    };
    let mut message = line.verdict.text().to_owned();
    for more in [&reason, &detail] {
        if !more.is_empty() && !message.ends_with(&more[..]) {
            message = format!("{message}: {more}");
        }
    }
    status.set_message(message);
    if line.verdict != VerdictWord::Conforms {
        status.set_type(line.verdict.text());
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
