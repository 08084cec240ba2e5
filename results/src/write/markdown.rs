//! Markdown output: the report in short, for an issue or a merge request.

use crate::conclusion;
use crate::drift::significant_drifts;
use crate::escape;
use crate::mutants::MutantVerdicts;
use crate::portability::{non_portable_outcomes, portability_class};
use crate::power;
use crate::report::{
    OutcomeClass, Report, TestRow, VERDICTS, count_weak, histogram_bars, interval_source, never_seen_bound,
    weak_reproducibility,
};
use crate::state;
use crate::statistics::Interval;
use crate::wire::{RunLine, VerdictWord};
use crate::write::code;
use crate::write::number::{format_count, format_probability, plural};

/// Largest number of tests with a histogram.
const MAX_HISTOGRAMS: usize = 200;
/// Largest number of tests with machine code.
const MAX_MACHINE_CODES: usize = 50;

/// Formats the report.
pub fn format_report(report: &Report) -> String {
    let mut text = "# Litmus tests\n\n".to_owned();
    for conclusion in conclusion::conclude_report(report) {
        text += &format!(
            "**{}** {}.\n\n",
            escape_markdown(&conclusion.sentence),
            escape_markdown(&conclusion.provenance)
        );
    }
    text += &format_totals(report);
    text += &format_violations(report);
    text += &format_drifts(report);
    text += &format_machine_code(report);
    text += &format_powers(report);
    text += &format_group("family", report.families(), report);
    text += &format_group("clause", report.clauses(), report);
    text += &format_verdicts(report);
    text += &format_hsa_comparison(report);
    text += &format_histograms(report);
    text += &format_devices(report);
    text
}

/// Formats the detection power of the runs.
fn format_powers(report: &Report) -> String {
    let powers = power::embedded_matrix()
        .map(|matrix| power::compute_powers(matrix, report.lines()))
        .unwrap_or_default();
    if powers.is_empty() {
        return String::new();
    }
    let mut text = "## Power\n\n".to_owned();
    for power in &powers {
        text += &format!(
            "{}: this run {}.\n",
            escape_markdown(&power.device),
            escape_markdown(&power.summarize())
        );
    }
    text += "\n";
    let families = powers.iter().flat_map(|power| &power.families).map(|family| family.family.as_str());
    let mut names: Vec<&str> = Vec::new();
    families.for_each(|family| {
        if !names.contains(&family) {
            names.push(family);
        }
    });
    text += &format_header(&["faults"], powers.iter().map(|power| power.device.as_str()));
    for name in names {
        let cells = powers.iter().map(|power| {
            let found = power.families.iter().find(|family| family.family == name);
            found.map_or_else(String::new, |family| format!("{} of {}", family.found, family.known))
        });
        text += &format_row(std::iter::once(escape_markdown(name)).chain(cells));
    }
    for power in &powers {
        for missed in &power.missed {
            text += &format!(
                "\n- {}: not {} ({}): {}; {}",
                escape_markdown(&power.device),
                escape_markdown(&missed.fault),
                escape_markdown(&missed.rule),
                escape_markdown(&missed.why),
                escape_markdown(&missed.describe_found_by())
            );
        }
    }
    text + "\n\n"
}

/// Escapes text, so that Markdown prints it literally.
fn escape_markdown(text: &str) -> String {
    let mut out = String::new();
    for c in escape::escape_line(text).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn format_row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn format_header<'a>(left: &[&str], right: impl IntoIterator<Item = &'a str>) -> String {
    let right: Vec<String> = right.into_iter().map(escape_markdown).collect();
    let mut text = format_row(left.iter().map(|name| (*name).to_owned()).chain(right.iter().cloned()));
    text += &format!("|{}{}\n", "---|".repeat(left.len()), "---:|".repeat(right.len()));
    text
}

fn format_totals(report: &Report) -> String {
    let mut text = format_header(
        &["device"],
        VERDICTS.map(VerdictWord::name).into_iter().chain(["instances", "weak tests"]),
    );
    for (device, tally) in report.devices.iter().zip(report.totals()) {
        let mut cells = vec![escape_markdown(&device.label)];
        cells.extend(tally.verdicts.map(|number| number.to_string()));
        cells.push(format_count(tally.instances));
        cells.push(tally.weak.to_string());
        text += &format_row(cells);
    }
    for device in report.devices.iter().filter(|device| device.unfinished > 0) {
        text += &format!(
            "\n{}: {} of the plan without a verdict.\n",
            escape_markdown(&device.label),
            plural(device.unfinished as u64, "test")
        );
    }
    text + "\n"
}

fn format_violations(report: &Report) -> String {
    let broken: Vec<&RunLine> = report.lines().filter(|line| line.verdict == VerdictWord::Violates).collect();
    if broken.is_empty() {
        return String::new();
    }
    let mut text = "## Broken rules\n\n".to_owned();
    for line in broken {
        text += &format!(
            "- **{}** on {}: {}  \n  again: {}\n",
            escape_markdown(&line.id),
            escape_markdown(&line.device),
            escape_markdown(line.detail.as_deref().unwrap_or_default()),
            escape_markdown(&line.replay)
        );
    }
    text + "\n"
}

/// Formats the runs with a significant rate change.
fn format_drifts(report: &Report) -> String {
    let found = significant_drifts(report.lines());
    if found.is_empty() {
        return String::new();
    }
    let mut text = "## Rates that drifted\n\n".to_owned();
    for (line, drift, p) in found {
        text += &format!(
            "- {} on {}: {} from {} to {} during the run (p = {p:.1e})\n",
            escape_markdown(&line.id),
            escape_markdown(&line.device),
            escape_markdown(&state::format_state(&drift.state)),
            format_probability(drift.earlier),
            format_probability(drift.later),
        );
    }
    text + "\n"
}

/// Formats the compiled code of violating tests.
fn format_machine_code(report: &Report) -> String {
    let mut all = report.tests.iter().flat_map(|row| &row.machine_code).peekable();
    if all.peek().is_none() {
        return String::new();
    }
    let mut text = "## Machine code of what violates\n".to_owned();
    let count = report.tests.iter().map(|row| row.machine_code.len()).sum::<usize>();
    for (device, line) in all.take(MAX_MACHINE_CODES) {
        let device = report.devices.get(*device).map_or("", |device| &device.label);
        text += &format!(
            "\n### {} on {} ({})\n",
            escape_markdown(&line.id),
            escape_markdown(device),
            escape_markdown(&line.driver)
        );
        if let Some(why) = &line.no_code_reason {
            text += &format!("\n{}\n", escape_markdown(&code::format_no_code_reason(why)));
        }
        for part in code::code_sections(line) {
            text += &format!("\n{}:\n\n{}", escape_markdown(&part.heading), format_code_block(&part.text));
        }
        if line.no_code_reason.is_none() {
            text += &format!("\nagain: {}\n", escape_markdown(&line.replay));
        }
    }
    if count > MAX_MACHINE_CODES {
        text += &format!("\n{} more are in the results.\n", count - MAX_MACHINE_CODES);
    }
    text + "\n"
}

/// Formats observed outcomes that HSA forbids and Vulkan allows; they are not device faults.
fn format_hsa_comparison(report: &Report) -> String {
    let lines = report.lines().filter(|line| line.hsa.is_some());
    let mut text = String::new();
    for line in lines {
        for outcome in non_portable_outcomes(line) {
            text += &format_row([
                escape_markdown(&line.id),
                escape_markdown(&line.device),
                escape_markdown(portability_class(line).unwrap_or_default()),
                escape_markdown(&crate::state::format_state(&outcome.state)),
                format_count(outcome.count),
            ]);
        }
    }
    if text.is_empty() {
        return text;
    }
    let header = format_header(&["test", "device", "class", "outcome"], ["count"]);
    format!("## Seen, allowed by Vulkan and forbidden by HSA\n\n{header}{text}\n")
}

/// Formats text as a code block with a fence longer than any run of backticks in it.
fn format_code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", escape::escape_block(text).trim_end())
}

fn format_group(word: &str, groups: crate::report::TallyGroups, report: &Report) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!("## By {word}\n\nTests that conform, and tests that showed a weak outcome.\n\n");
    text += &format_header(&[word, "tests"], report.devices.iter().map(|device| device.label.as_str()));
    for (name, tests, tallies) in groups {
        let mut cells = vec![escape_markdown(&name), tests.to_string()];
        cells.extend(tallies.iter().map(|tally| {
            let broken = match tally.verdict_count(VerdictWord::Violates) {
                0 => String::new(),
                number => format!(", **{number} violate**"),
            };
            format!("{} conform, {} weak{broken}", tally.verdict_count(VerdictWord::Conforms), tally.weak)
        }));
        text += &format_row(cells);
    }
    text + "\n"
}

fn format_verdicts(report: &Report) -> String {
    let mut text = "## Verdicts\n\n".to_owned();
    text += &format_header(&["test"], report.devices.iter().map(|device| device.label.as_str()));
    let mutants = MutantVerdicts::from_lines(report.lines());
    for test in &report.tests {
        text +=
            &format_row(std::iter::once(escape_markdown(&test.id)).chain(test.cells.iter().map(|cell| {
                match cell {
                    None => "no verdict".to_owned(),
                    Some(line) => format_verdict(line, &mutants),
                }
            })));
    }
    text + "\n"
}

fn format_verdict(line: &RunLine, mutants: &MutantVerdicts<'_>) -> String {
    let word = match (line.verdict, mutants.summarize(line)) {
        (VerdictWord::Violates, _) => "**violates**".to_owned(),
        (_, words) if words.is_empty() => line.shown_word().to_owned(),
        (_, words) => format!("{} ({words})", line.shown_word()),
    };
    let reason =
        line.reason.as_deref().map(|reason| format!(": {}", escape_markdown(reason))).unwrap_or_default();
    let weak = match count_weak(line) {
        0 => String::new(),
        seen => format!(", {} weak", format_count(seen)),
    };
    let missing = match line.not_executed {
        0 => String::new(),
        number => format!(", {} not executed", format_count(number)),
    };
    format!("{word}{reason}{weak}{missing}")
}

fn format_histograms(report: &Report) -> String {
    let has_histogram = |row: &&TestRow| {
        row.cells.iter().flatten().any(|line| count_weak(line) > 0 || line.verdict == VerdictWord::Violates)
    };
    let rows: Vec<&TestRow> = report.tests.iter().filter(has_histogram).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "## Weak outcomes\n".to_owned();
    for row in rows.iter().take(MAX_HISTOGRAMS) {
        for line in row.cells.iter().flatten() {
            text += &format_histogram(line);
        }
    }
    if rows.len() > MAX_HISTOGRAMS {
        text += &format!("\n{} more tests showed weak outcomes.\n", rows.len() - MAX_HISTOGRAMS);
    }
    text + "\n"
}

fn format_histogram(line: &RunLine) -> String {
    let listed: Vec<_> =
        histogram_bars(line).into_iter().filter(|bar| bar.kind != OutcomeClass::Ordinary).collect();
    if !listed.iter().any(|bar| bar.count > 0) {
        return String::new();
    }
    let mut text = format!(
        "\n### {} on {}\n\n{} instances, {} interleaved; {}{}{}\n\n",
        escape_markdown(&line.id),
        escape_markdown(&line.device),
        format_count(line.instances),
        format_count(line.interleaved),
        interval_source(line),
        format_optional("; reproducibility", weak_reproducibility(line)),
        format_optional("; anything never seen is below", never_seen_bound(line)),
    );
    text += "| outcome | | count | rate | 95 % interval |\n|---|---|---:|---:|---|\n";
    for bar in listed {
        let of_batches = if bar.counts_batches { " of batches" } else { "" };
        let interval = match (bar.interval, bar.bound) {
            (Some(Interval { low, high }), _) => {
                format!("{} to {}{of_batches}", format_probability(low), format_probability(high))
            }
            (None, Some(bound)) => format!("below {}{of_batches}", format_probability(bound)),
            (None, None) => String::new(),
        };
        let cells = [
            escape_markdown(&bar.outcome),
            format!("{} {}", bar.kind.symbol(), bar.kind.name()),
            format_count(bar.count),
            format_probability(bar.rate),
            interval,
        ];
        text += &format_row(cells);
    }
    text
}

fn format_optional(label: &str, probability: Option<f64>) -> String {
    probability.map_or_else(String::new, |probability| format!("{label} {}", format_probability(probability)))
}

fn format_devices(report: &Report) -> String {
    let mut text = "## Devices\n\n".to_owned();
    text += "| | device | driver | Vulkan | seed | budget | stress | vk-litmus |\n|---|---|---|---|---|---|---|---|\n";
    for device in &report.devices {
        let record = device.record.as_ref();
        let property =
            |part: &dyn Fn(&crate::wire::DeviceRecord) -> String| record.map(part).unwrap_or_default();
        let seeds: Vec<String> = device.seeds.iter().map(u64::to_string).collect();
        text += &format_row([
            escape_markdown(&device.label),
            escape_markdown(&property(&|r| r.device_name.clone())),
            escape_markdown(&property(&|r| format!("{} {}", r.driver_name, r.driver_info))),
            escape_markdown(&property(&|r| r.api_version.clone())),
            seeds.join(", "),
            escape_markdown(&device.budget),
            escape_markdown(&device.stress),
            escape_markdown(&device.tool),
        ]);
    }
    text
}
