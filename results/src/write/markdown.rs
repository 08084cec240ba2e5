//! Markdown output: the report in short, for an issue or a merge request.

use crate::conclusion;
use crate::drift::significant;
use crate::mutants::Mutants;
use crate::portability::{class_beside_hsa, seen_beyond_hsa};
use crate::power;
use crate::report::{OutcomeClass, Report, TestRow, VERDICTS, bars, trials, weak_reproducibility, weak_seen};
use crate::show;
use crate::state;
use crate::statistics::never_seen_bound;
use crate::wire::{RunLine, VerdictWord};
use crate::write::code;
use crate::write::number::{count, plural, probability};

/// Largest number of tests with a histogram.
const MOST_HISTOGRAMS: usize = 200;
/// Largest number of tests with machine code.
const MOST_MACHINE_CODES: usize = 50;

/// Formats the report.
pub fn document(report: &Report) -> String {
    let mut text = "# Litmus tests\n\n".to_owned();
    for conclusion in conclusion::of_report(report) {
        text += &format!("**{}** {}.\n\n", plain(&conclusion.sentence), plain(&conclusion.circumstances));
    }
    text += &totals(report);
    text += &violations(report);
    text += &drifted(report);
    text += &machine_code(report);
    text += &powers(report);
    text += &group("family", report.families(), report);
    text += &group("clause", report.clauses(), report);
    text += &verdicts(report);
    text += &beside_hsa(report);
    text += &histograms(report);
    text += &devices(report);
    text
}

/// Formats the detection power of the runs.
fn powers(report: &Report) -> String {
    let powers = power::matrix().map(|matrix| power::of(matrix, report.lines())).unwrap_or_default();
    if powers.is_empty() {
        return String::new();
    }
    let mut text = "## Power\n\n".to_owned();
    for power in &powers {
        text += &format!("{}: this run {}.\n", plain(&power.device), plain(&power.words()));
    }
    text += "\n";
    let families = powers.iter().flat_map(|power| &power.families).map(|family| family.family.as_str());
    let mut names: Vec<&str> = Vec::new();
    families.for_each(|family| {
        if !names.contains(&family) {
            names.push(family);
        }
    });
    text += &header(&["faults"], powers.iter().map(|power| power.device.as_str()));
    for name in names {
        let cells = powers.iter().map(|power| {
            let found = power.families.iter().find(|family| family.family == name);
            found.map_or_else(String::new, |family| format!("{} of {}", family.found, family.known))
        });
        text += &row(std::iter::once(plain(name)).chain(cells));
    }
    for power in &powers {
        for missed in &power.missed {
            text += &format!(
                "\n- {}: not {} ({}): {}; {}",
                plain(&power.device),
                plain(&missed.fault),
                plain(&missed.rule),
                plain(&missed.why),
                plain(&missed.found_by_words())
            );
        }
    }
    text + "\n\n"
}

/// Escapes text, so that Markdown prints it literally.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in show::line(text).chars() {
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

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn header<'a>(left: &[&str], right: impl IntoIterator<Item = &'a str>) -> String {
    let right: Vec<String> = right.into_iter().map(plain).collect();
    let mut text = row(left.iter().map(|name| (*name).to_owned()).chain(right.iter().cloned()));
    text += &format!("|{}{}\n", "---|".repeat(left.len()), "---:|".repeat(right.len()));
    text
}

fn totals(report: &Report) -> String {
    let mut text =
        header(&["device"], VERDICTS.map(VerdictWord::text).into_iter().chain(["instances", "weak tests"]));
    for (device, tally) in report.devices.iter().zip(report.totals()) {
        let mut cells = vec![plain(&device.label)];
        cells.extend(tally.verdicts.map(|number| number.to_string()));
        cells.push(count(tally.instances));
        cells.push(tally.weak.to_string());
        text += &row(cells);
    }
    for device in report.devices.iter().filter(|device| device.unfinished > 0) {
        text += &format!(
            "\n{}: {} of the plan without a verdict.\n",
            plain(&device.label),
            plural(device.unfinished as u64, "test")
        );
    }
    text + "\n"
}

fn violations(report: &Report) -> String {
    let broken: Vec<&RunLine> = report.lines().filter(|line| line.verdict == VerdictWord::Violates).collect();
    if broken.is_empty() {
        return String::new();
    }
    let mut text = "## Broken rules\n\n".to_owned();
    for line in broken {
        text += &format!(
            "- **{}** on {}: {}  \n  again: {}\n",
            plain(&line.id),
            plain(&line.device),
            plain(line.detail.as_deref().unwrap_or_default()),
            plain(&line.replay)
        );
    }
    text + "\n"
}

/// Formats the runs with a significant rate change.
fn drifted(report: &Report) -> String {
    let found = significant(report.lines());
    if found.is_empty() {
        return String::new();
    }
    let mut text = "## Rates that drifted\n\n".to_owned();
    for (line, drift, p) in found {
        text += &format!(
            "- {} on {}: {} from {} to {} during the run (p = {p:.1e})\n",
            plain(&line.id),
            plain(&line.device),
            plain(&state::text(&drift.state)),
            probability(drift.earlier),
            probability(drift.later),
        );
    }
    text + "\n"
}

/// Formats the compiled code of violating tests.
fn machine_code(report: &Report) -> String {
    let mut all = report.tests.iter().flat_map(|row| &row.machine_code).peekable();
    if all.peek().is_none() {
        return String::new();
    }
    let mut text = "## Machine code of what violates\n".to_owned();
    let count = report.tests.iter().map(|row| row.machine_code.len()).sum::<usize>();
    for (device, line) in all.take(MOST_MACHINE_CODES) {
        let device = report.devices.get(*device).map_or("", |device| &device.label);
        text += &format!("\n### {} on {} ({})\n", plain(&line.id), plain(device), plain(&line.driver));
        if let Some(why) = &line.no_code_reason {
            text += &format!("\n{}\n", plain(&code::without(why)));
        }
        for part in code::parts(line) {
            text += &format!("\n{}:\n\n{}", plain(&part.heading), fence_block(&part.text));
        }
        if line.no_code_reason.is_none() {
            text += &format!("\nagain: {}\n", plain(&line.replay));
        }
    }
    if count > MOST_MACHINE_CODES {
        text += &format!("\n{} more are in the results.\n", count - MOST_MACHINE_CODES);
    }
    text + "\n"
}

/// Formats observed outcomes that HSA forbids and Vulkan allows; they are not device faults.
fn beside_hsa(report: &Report) -> String {
    let lines = report.lines().filter(|line| line.hsa.is_some());
    let mut text = String::new();
    for line in lines {
        for outcome in seen_beyond_hsa(line) {
            text += &row([
                plain(&line.id),
                plain(&line.device),
                plain(class_beside_hsa(line).unwrap_or_default()),
                plain(&crate::state::text(&outcome.state)),
                count(outcome.count),
            ]);
        }
    }
    if text.is_empty() {
        return text;
    }
    let header = header(&["test", "device", "class", "outcome"], ["count"]);
    format!("## Seen, allowed by Vulkan and forbidden by HSA\n\n{header}{text}\n")
}

/// Formats text as a code block with a fence longer than any run of backticks in it.
fn fence_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", show::block(text).trim_end())
}

fn group(word: &str, groups: crate::report::Groups, report: &Report) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!("## By {word}\n\nTests that conform, and tests that showed a weak outcome.\n\n");
    text += &header(&[word, "tests"], report.devices.iter().map(|device| device.label.as_str()));
    for (name, tests, tallies) in groups {
        let mut cells = vec![plain(&name), tests.to_string()];
        cells.extend(tallies.iter().map(|tally| {
            let broken = match tally.of(VerdictWord::Violates) {
                0 => String::new(),
                number => format!(", **{number} violate**"),
            };
            format!("{} conform, {} weak{broken}", tally.of(VerdictWord::Conforms), tally.weak)
        }));
        text += &row(cells);
    }
    text + "\n"
}

fn verdicts(report: &Report) -> String {
    let mut text = "## Verdicts\n\n".to_owned();
    text += &header(&["test"], report.devices.iter().map(|device| device.label.as_str()));
    let mutants = Mutants::of(report.lines());
    for test in &report.tests {
        text += &row(std::iter::once(plain(&test.id)).chain(test.cells.iter().map(|cell| match cell {
            None => "no verdict".to_owned(),
            Some(line) => verdict(line, &mutants),
        })));
    }
    text + "\n"
}

fn verdict(line: &RunLine, mutants: &Mutants<'_>) -> String {
    let word = match (line.verdict, mutants.words(line)) {
        (VerdictWord::Violates, _) => "**violates**".to_owned(),
        (other, words) if words.is_empty() => other.text().to_owned(),
        (other, words) => format!("{} ({words})", other.text()),
    };
    let reason = line.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    let weak = match weak_seen(line) {
        0 => String::new(),
        seen => format!(", {} weak", count(seen)),
    };
    let missing = match line.not_executed {
        0 => String::new(),
        number => format!(", {} not executed", count(number)),
    };
    format!("{word}{reason}{weak}{missing}")
}

fn histograms(report: &Report) -> String {
    let shows = |row: &&TestRow| {
        row.cells.iter().flatten().any(|line| weak_seen(line) > 0 || line.verdict == VerdictWord::Violates)
    };
    let rows: Vec<&TestRow> = report.tests.iter().filter(shows).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "## Weak outcomes\n".to_owned();
    for row in rows.iter().take(MOST_HISTOGRAMS) {
        for line in row.cells.iter().flatten() {
            text += &histogram(line);
        }
    }
    if rows.len() > MOST_HISTOGRAMS {
        text += &format!("\n{} more tests showed weak outcomes.\n", rows.len() - MOST_HISTOGRAMS);
    }
    text + "\n"
}

fn histogram(line: &RunLine) -> String {
    let told: Vec<_> = bars(line).into_iter().filter(|bar| bar.kind != OutcomeClass::Ordinary).collect();
    if !told.iter().any(|bar| bar.count > 0) {
        return String::new();
    }
    let batches = line.batches.map_or_else(String::new, |batches| {
        format!(" in {} independent batches, which intervals count", count(batches))
    });
    let mut text = format!(
        "\n### {} on {}\n\n{} instances{batches}, {} interleaved; reproducibility {}; anything never seen is below {}\n\n",
        plain(&line.id),
        plain(&line.device),
        count(line.instances),
        count(line.interleaved),
        probability(weak_reproducibility(line).unwrap_or_default()),
        probability(never_seen_bound(trials(line))),
    );
    text += "| outcome | | count | rate | 95 % interval | anytime |\n|---|---|---:|---:|---|---|\n";
    for bar in told {
        let interval = match bar.interval {
            Some(interval) => format!("{} to {}", probability(interval.low), probability(interval.high)),
            None => format!("below {}", probability(bar.bound.unwrap_or(1.0))),
        };
        let interval = if bar.of_batches { format!("{interval} of batches") } else { interval };
        let anytime = bar.anytime.map_or(String::new(), |anytime| {
            format!("{} to {}", probability(anytime.low), probability(anytime.high))
        });
        let cells = [
            plain(&bar.outcome),
            format!("{} {}", bar.kind.sign(), bar.kind.word()),
            count(bar.count),
            probability(bar.rate),
            interval,
            anytime,
        ];
        text += &row(cells);
    }
    text
}

fn devices(report: &Report) -> String {
    let mut text = "## Devices\n\n".to_owned();
    text += "| | device | driver | Vulkan | seed | budget | stress | vk-litmus |\n|---|---|---|---|---|---|---|---|\n";
    for device in &report.devices {
        let record = device.record.as_ref();
        let of = |part: &dyn Fn(&crate::wire::DeviceRecord) -> String| record.map(part).unwrap_or_default();
        let seeds: Vec<String> = device.seeds.iter().map(u64::to_string).collect();
        text += &row([
            plain(&device.label),
            plain(&of(&|r| r.device_name.clone())),
            plain(&of(&|r| format!("{} {}", r.driver_name, r.driver_info))),
            plain(&of(&|r| r.api_version.clone())),
            seeds.join(", "),
            plain(&device.budget),
            plain(&device.stress),
            plain(&device.tool),
        ]);
    }
    text
}
