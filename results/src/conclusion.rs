//! The conclusion of a run on a device: its verdict in one sentence, and device, driver, model, suite, date and tool.

use std::collections::BTreeSet;

use crate::number::plural;
use crate::report::{DeviceColumn, Report, Tally, TestRow, VERDICTS};
use crate::wire::{PlanRecord, RunLine, VerdictWord};
use crate::{Reason, describe_weak_violations, escape, is_weak_violation};

/// The conclusion of a run on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The verdict in one sentence. A run with tests that did not run starts with "Incomplete".
    pub sentence: String,
    /// Driver, model, suite, date and version of the tool, as far as they are known.
    pub provenance: String,
    /// True if the device broke a rule.
    pub violates: bool,
}

/// Returns the conclusion of each device of a report, in the order of its columns.
pub fn conclude_report(report: &Report) -> Vec<Conclusion> {
    let totals = report.totals();
    let devices = report.devices.iter().zip(&totals).enumerate();
    devices
        .map(|(index, (device, tally))| {
            let lines = report.tests.iter().filter_map(|row| row.cells.get(index)?.as_ref());
            conclude_device(device, tally, &lines.collect::<Vec<_>>())
        })
        .collect()
}

/// Returns the conclusion as the first lines of a text; `lines` are those of the plan, in its order.
pub fn format_conclusions(plan: &PlanRecord, lines: &[RunLine]) -> String {
    let mut text = String::new();
    for device in &plan.devices {
        let device_lines: Vec<&RunLine> = lines.iter().filter(|line| line.device == device.name).collect();
        let mut tally = Tally::default();
        device_lines.iter().for_each(|line| tally.add(line));
        let column = DeviceColumn {
            label: device.name.clone(),
            record: Some(device.clone()),
            tool: plan.tool.clone(),
            seeds: BTreeSet::new(),
            budget: plan.budget.clone(),
            stress: plan.stress.clone(),
            environment: plan.environment.clone(),
            unfinished: 0,
        };
        let conclusion = conclude_device(&column, &tally, &device_lines);
        text += &format!("{}\n{}\n\n", conclusion.sentence, conclusion.provenance);
    }
    text
}

fn conclude_device(device: &DeviceColumn, tally: &Tally, lines: &[&RunLine]) -> Conclusion {
    let count_of = |verdict: VerdictWord| {
        let counts = VERDICTS.iter().zip(tally.verdicts);
        counts.filter(|(known, _)| **known == verdict).map(|(_, number)| number).sum::<usize>()
    };
    let not_run = lines.iter().filter(|line| did_not_run(line)).count();
    let violates = count_of(VerdictWord::Violates);
    let (conforms, undefined) = (count_of(VerdictWord::Conforms), count_of(VerdictWord::Undefined));
    let label = escape::escape_line(&device.label);
    let tests = plural(lines.len() as u64, "test");
    let mut sentence = match (violates, conforms) {
        (0, 0) => format!("{label}: none of {tests} was judged"),
        (0, _) => {
            let conform = if lines.len() == 1 { "conforms" } else { "conform" };
            format!("{label} kept every rule that was judged: {conforms} of {tests} {conform}")
        }
        _ => {
            let weak = lines.iter().filter(|line| is_weak_violation(line)).count();
            let weak = describe_weak_violations(weak, violates);
            format!("{label} broke a rule in {violates} of {tests}{weak}")
        }
    };
    let others = [
        (count_of(VerdictWord::Inconclusive), "inconclusive"),
        (undefined, "undefined"),
        (count_of(VerdictWord::Skipped), "skipped"),
    ];
    for (number, word) in others.into_iter().filter(|(number, _)| *number > 0) {
        sentence += &format!(", {number} {word}");
    }
    let broken = lines.iter().filter(|line| line.broken_claim().is_some()).count();
    if broken > 0 {
        sentence += &format!("; {} failed", plural(broken as u64, "assertion"));
    }
    sentence += ".";
    if not_run > 0 {
        sentence = format!("Incomplete: {not_run} of {tests} did not run. {sentence}");
    }
    Conclusion { sentence, provenance: format_provenance(device, lines), violates: violates > 0 }
}

/// Returns true if the run ended before the test.
pub fn did_not_run(line: &RunLine) -> bool {
    let words = [Reason::NoTime.name(), Reason::Missing.name()];
    line.reason.as_deref().is_some_and(|reason| words.contains(&reason))
}

/// Lists driver, model, suite, date and version.
fn format_provenance(device: &DeviceColumn, lines: &[&RunLine]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let tool = format!("vk-litmus {}", device.tool);
    if let Some(record) = &device.record {
        let driver = format!("{} {}", record.driver_name, record.driver_info);
        // The simulated GPU is part of the program.
        if driver.trim() != tool {
            parts.push(driver.trim().to_owned());
        }
    }
    let models: BTreeSet<&str> = lines.iter().map(|line| line.model.as_str()).collect();
    let models: Vec<&str> = models.into_iter().filter(|model| !model.is_empty()).collect();
    if !models.is_empty() {
        parts.push(format!("model {}", models.join(", ")));
    }
    if let Some(environment) = &device.environment {
        if !environment.suite.is_empty() {
            parts.push(format!("suite {}", environment.suite));
        }
        parts.push(environment.started.split('T').next().unwrap_or_default().to_owned());
    }
    if !device.tool.is_empty() {
        parts.push(tool);
    }
    parts.retain(|part| !part.is_empty());
    escape::escape_line(&parts.join("; ")).into_owned()
}

/// Returns the tests without a verdict on some device, with the reasons and the advice for one.
pub fn inconclusive_tests(report: &Report) -> Vec<(usize, &TestRow, &RunLine)> {
    let rows = report.tests.iter().enumerate();
    rows.flat_map(|(index, row)| {
        let lines = row.cells.iter().flatten();
        let undecided = lines.filter(|line| line.verdict == VerdictWord::Inconclusive);
        undecided.map(move |line| (index, row, line))
    })
    .collect()
}

/// Returns advice on how to get a verdict for a test, or a shader, that is inconclusive for this reason.
pub fn advice_for_reason(reason: &str, is_shader: bool) -> &'static str {
    match reason {
        "not judged" if is_shader => "say what must hold: `run FILE --assert EXPRESSION`",
        "crashed" | "device lost" if is_shader => {
            "look for undefined behaviour at the subgroup size of the device: `race FILE --subgroup-size N`; without \
             it, a crash is a bug of the driver"
        }
        "no time" => "give more time: `run --resume DIR --time 2m`",
        "missing" => "resume the run: `run --resume DIR`",
        "not exercised" => "run longer (`--time 2m`), on an idle machine, or tune the stress (`tune`)",
        "timed out" => "run this test alone, or look for a hang of the driver",
        "crashed" | "device lost" => "run this test alone; a crash of the driver is a bug to report",
        "not executed" | "counts disagree" | "null device" => {
            "the driver does not execute the test as written: report it"
        }
        "no resolved instance" => "the device gives waiting threads no time: try another stress",
        "not judged" => "the model needs more time: `check TEST --timeout 1m`",
        _ => "see the detail of the test",
    }
}
