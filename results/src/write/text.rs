//! Text output for terminals: verdicts as a table followed by weak histograms, or predictions.

use std::collections::BTreeMap;
use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, Color};

use crate::drift::significant_drifts;
use crate::escape;
use crate::mutants::MutantVerdicts;
use crate::portability::portability_class;
use crate::power;
use crate::reason::Reason;
use crate::report::{count_weak, interval_source, never_seen_bound, rate_interval, weak_reproducibility};
use crate::state;
use crate::statistics::{Interval, Proportion};
use crate::wire::{CheckLine, FindingRecord, ProgressAnswer, RaceWord, RunLine, RunOutcome, VerdictWord};
use crate::write::number::{format_count, format_probability, format_seconds, plural};
use crate::write::{CheckWriter, RunWriter, TextLayout, columns, progress, shader};

/// Writer of predictions.
pub struct TextCheckWriter<W> {
    out: W,
}

impl<W: Write> TextCheckWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> TextCheckWriter<W> {
        TextCheckWriter { out }
    }

    fn write_progress(&mut self, progress: &ProgressAnswer) -> io::Result<()> {
        let under = format!("under {}, {} fairness ({})", progress.model, progress.fairness, progress.memory);
        let expected = match (progress.terminates, progress.expected) {
            (Some(ends), Some(expected)) if ends != expected => ", UNEXPECTED",
            (Some(_), Some(_)) => ", as expected",
            _ => "",
        };
        let why = progress.why.as_deref().unwrap_or_default();
        match progress.terminates {
            Some(true) if why.is_empty() => writeln!(self.out, "  terminates {under}{expected}")?,
            Some(true) => writeln!(self.out, "  terminates {why} {under}{expected}")?,
            Some(false) => writeln!(self.out, "  {why} {under}{expected}")?,
            None => writeln!(self.out, "  unknown ({why}) {under}")?,
        }
        let mut repeating = false;
        for step in &progress.schedule {
            if step.repeats && !repeating {
                writeln!(self.out, "    forever:")?;
                repeating = true;
            }
            let read = step.read.map(|value| format!("  reads {value}")).unwrap_or_default();
            let written = step.written.map(|value| format!("  writes {value}")).unwrap_or_default();
            let indent = if step.repeats { "  " } else { "" };
            let (thread, line, text) =
                (escape::escape_line(&step.thread), step.line, escape::escape_line(&step.instruction));
            writeln!(self.out, "    {indent}{thread}  line {line}: {text}{read}{written}")?;
        }
        Ok(())
    }
}

/// Suffix of an outcome that only executions with out-of-thin-air values produce.
const THIN_AIR_SUFFIX: &str = "  thin air: no implementation is known to show it";
/// Suffix of such an outcome if a device showed it.
const THIN_AIR_OBSERVED_SUFFIX: &str =
    "  OUT OF THIN AIR: allowed, and no implementation was known to show it";

impl<W: Write> CheckWriter for TextCheckWriter<W> {
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()> {
        let mut findings = line.findings.iter().flatten().peekable();
        let is_of_compiler = findings.peek().is_some() && findings.all(FindingRecord::is_of_compiler);
        let race = match line.race {
            _ if line.no_execution => "no execution",
            RaceWord::Free if line.race_outside_filter => "race-free inside its filter, racy outside it,",
            RaceWord::Free if is_of_compiler => "race-free in its language, racy in its module,",
            RaceWord::Unknown if is_of_compiler => {
                "not known to be race-free in its language, racy in its module,"
            }
            RaceWord::Free => "race-free",
            RaceWord::Racy if line.race_thin_air => "racy by values out of thin air alone",
            RaceWord::Racy => "racy",
            RaceWord::NeedsInputs => "needs-inputs",
            RaceWord::NotDefined => "no race condition in this model,",
            // Behaviour after the first undefined operation is unknown.
            RaceWord::Unknown if line.findings.as_ref().is_some_and(|found| !found.is_empty()) => "undefined",
            RaceWord::Unknown if line.cut > 0 || line.findings.is_some() => "not known to be race-free",
            RaceWord::Unknown => "no answer within the time limit",
        };
        let read = match line.uninitialised_read {
            Some(true) => ", with an uninitialised read",
            Some(false) | None => "",
        };
        let under = if line.race == RaceWord::NotDefined && !line.no_execution { "" } else { "under " };
        writeln!(
            self.out,
            "{}: {race} {under}{}{read}",
            escape::escape_line(&line.id),
            escape::escape_line(&line.model)
        )?;
        if line.cut > 0 {
            let (cut, runs, bound) = (line.cut, line.runs, line.bound);
            let is_answered =
                line.race != RaceWord::Unknown && line.queries.iter().all(|query| query.holds.is_some());
            let what = if is_answered { "longer runs are not listed" } else { "unknown" };
            writeln!(
                self.out,
                "  {what}: {cut} of {runs} runs were cut off at the bound (--unroll {bound})"
            )?;
        }
        for outcome in &line.outcomes {
            let allowed = match outcome.allowed {
                true => "allowed",
                false if line.cut > 0 => "not met",
                false => "forbidden",
            };
            // Longer runs may show the outcome, also without weak memory.
            let weak = if outcome.weak && (outcome.allowed || line.cut == 0) { "  weak" } else { "" };
            let filtered = if outcome.filtered { "  filtered" } else { "" };
            let thin_air = if outcome.thin_air { THIN_AIR_SUFFIX } else { "" };
            writeln!(
                self.out,
                "  {allowed:<9}  {}{weak}{filtered}{thin_air}",
                state::format_state(&outcome.state)
            )?;
        }
        if line.outcomes_listed == Some(false) && line.findings.is_none() {
            match line.outcomes.is_empty() {
                true => writeln!(self.out, "  outcomes are not listed")?,
                false => writeln!(self.out, "  not listed: outcomes that the search did not reach in time")?,
            }
        }
        for query in &line.queries {
            let holds = match query.holds {
                Some(true) => "holds",
                Some(false) => "does not hold",
                None if line.no_execution => "is not answered: no execution is consistent",
                None if line.cut > 0 => "is unknown: no run within the bound shows it",
                None => "is not answered",
            };
            let expected = match (query.holds, query.expected) {
                (Some(holds), Some(expected)) if holds != expected => ", UNEXPECTED",
                (Some(_), Some(_)) => ", as expected",
                _ => "",
            };
            writeln!(self.out, "  {} {holds}{expected}", escape::escape_block(&query.text))?;
        }
        for finding in line.findings.iter().flatten() {
            writeln!(
                self.out,
                "  {}: {}",
                escape::escape_line(&finding.kind),
                escape::escape_line(&finding.message)
            )?;
            for place in &finding.at {
                let file = place.file.as_deref().map(escape::escape_line).unwrap_or_default();
                let line = place.line.map_or(String::new(), |line| format!(":{line}"));
                let access = place.access.as_deref().unwrap_or("at");
                let invocation = place.invocation.as_deref().unwrap_or_default();
                writeln!(self.out, "    {access} {file}{line}  {}", escape::escape_line(invocation))?;
            }
        }
        if let Some(progress) = &line.progress {
            self.write_progress(progress)?;
        }
        writeln!(self.out)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writer of verdicts; the report is written at the end.
pub struct TextRunWriter<W> {
    out: W,
    layout: TextLayout,
    lines: Vec<RunLine>,
}

impl<W: Write> TextRunWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W, layout: TextLayout) -> TextRunWriter<W> {
        TextRunWriter { out, layout, lines: Vec::new() }
    }
}

impl<W: Write> RunWriter for TextRunWriter<W> {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.lines.push(line.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        write!(self.out, "{}", format_report(&self.lines, self.layout))?;
        self.out.flush()
    }
}

/// Up to this number of verdicts, a brief report lists all of them.
const MAX_LINES_WITHOUT_BRIEF: usize = 12;

/// Up to this number of tests with one reason, a brief report explains each; of more, it names this number.
const MAX_NAMES: usize = 3;

/// Formats the report: table, weak histograms, explanations, summary. A brief one has neither table nor histograms, and
/// a line for each reason of inconclusive tests.
pub fn format_report(lines: &[RunLine], layout: TextLayout) -> String {
    let mut text = progress::format_report(lines, layout);
    let is_brief = layout.is_brief && lines.len() > MAX_LINES_WITHOUT_BRIEF && text.is_empty();
    if text.is_empty() && !is_brief {
        text += &format_table(lines, layout);
        text += "\n";
    }
    for line in lines.iter().filter(|_| !is_brief) {
        text += &match line.shader {
            Some(_) => shader::format_histogram(line),
            None => format_weak_histogram(line),
        };
    }
    text += &format_explanations(lines, is_brief);
    text += &format_drifts(lines);
    text += &format_summary(lines);
    text += "\n";
    text += &format_powers(lines);
    text
}

/// The smallest number of tests for which a run on a terminal shows its power: a few tests find few faults, which
/// reads like a failure.
const MIN_TESTS_FOR_POWER: usize = 10;

/// Formats the detection power of each device's run.
fn format_powers(lines: &[RunLine]) -> String {
    let mut text = String::new();
    for power in
        power::embedded_matrix().map(|matrix| power::compute_powers(matrix, lines)).unwrap_or_default()
    {
        if lines.iter().filter(|line| line.device == power.device).count() < MIN_TESTS_FOR_POWER {
            continue;
        }
        let gaps = power.describe_gaps();
        let gaps = if gaps.is_empty() { gaps } else { format!("; less than all of: {gaps}") };
        text += &format!("power on {}: {}{gaps}\n", escape::escape_line(&power.device), power.summarize());
    }
    text + &format_spreads(lines)
}

/// Formats the outcomes under another layout, which is used if the first part of a run has no weak outcome that
/// the device is known to show.
fn format_spreads(lines: &[RunLine]) -> String {
    let format_spread = |line: &RunLine| {
        let spread = line.spread.as_ref()?;
        let (id, device) = (escape::escape_line(&line.id), escape::escape_line(&line.device));
        let (first, second, weak) =
            (format_count(spread.first), format_count(spread.second), format_count(spread.weak));
        Some(format!(
            "{id} on {device}: none of {first} instances weak under the first stress, {weak} of {second} with \
             other delays, distances and alignments\n"
        ))
    };
    lines.iter().filter_map(format_spread).collect()
}

fn format_table(lines: &[RunLine], layout: TextLayout) -> String {
    let mut table = columns::new_table(layout);
    let mut header = vec!["test", "device", "verdict", "instances", "interleaved", "weak"];
    // Only tests of HSA need this column.
    let lowered = lines.iter().any(|line| line.hsa.is_some());
    if lowered {
        header.push("compared with HSA");
    }
    table.set_header(header);
    for index in 3..6 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mutants = MutantVerdicts::from_lines(lines);
    for line in lines {
        let verdict = match (&line.reason, mutants.summarize(line)) {
            (Some(reason), _) => format!("{}: {}", line.shown_word(), escape::escape_line(reason)),
            (None, words) if words.is_empty() => line.shown_word().to_owned(),
            (None, words) => format!("{} ({words})", line.shown_word()),
        };
        let colour = match line.verdict {
            _ if line.broken_claim().is_some() => Color::Red,
            VerdictWord::Conforms => Color::Green,
            VerdictWord::Violates => Color::Red,
            VerdictWord::Inconclusive => Color::Yellow,
            VerdictWord::Undefined | VerdictWord::Skipped => Color::Grey,
        };
        let verdict = if layout.has_colour { Cell::new(verdict).fg(colour) } else { Cell::new(verdict) };
        let (instances, interleaved, weak) = if line.verdict == VerdictWord::Skipped {
            (String::new(), String::new(), String::new())
        } else {
            let weak = count_weak(line);
            (format_count(line.instances), format_count(line.interleaved), format_count(weak))
        };
        let mut row = vec![
            Cell::new(escape::escape_line(&line.id)),
            Cell::new(escape::escape_line(&line.device)),
            verdict,
            Cell::new(instances),
            Cell::new(interleaved),
            Cell::new(weak),
        ];
        if lowered {
            // If no `await` passed, the run gives little evidence.
            let waits = line.outcomes.iter().any(|outcome| outcome.filtered);
            let no_await_passed = waits && line.hsa.as_ref().is_some_and(|hsa| hsa.passed == 0);
            let class = portability_class(line).unwrap_or_default();
            let class = if no_await_passed { format!("{class}, no await passed") } else { class.to_owned() };
            row.push(Cell::new(escape::escape_line(&class)));
        }
        table.add_row(row);
    }
    columns::format_table(&table, layout)
}

/// Formats the weak outcomes of a run that observed some, with rates, and the allowed ones with count zero.
fn format_weak_histogram(line: &RunLine) -> String {
    let weak: Vec<&RunOutcome> = line.outcomes.iter().filter(|o| o.weak).collect();
    let seen = count_weak(line);
    if seen == 0 {
        return String::new();
    }
    let resolved = line.instances.saturating_sub(line.unresolved);
    let reproducibility = weak_reproducibility(line).map_or_else(String::new, |probability| {
        format!("; reproducibility {}", format_probability(probability))
    });
    let mut text = format!(
        "{} on {}: weak in {} of {} instances{reproducibility}; {}\n",
        escape::escape_line(&line.id),
        escape::escape_line(&line.device),
        format_count(seen),
        format_count(resolved),
        interval_source(line),
    );
    // The rate is one of instances, an interval of batches is not around it.
    let (lead, unit) = if line.batches.is_some() { ("seen in ", " of batches") } else { ("", "") };
    for outcome in weak.iter().filter(|o| o.count > 0) {
        let mark = match line.verdict {
            VerdictWord::Violates if !outcome.allowed => "  FORBIDDEN",
            VerdictWord::Conforms | VerdictWord::Inconclusive if outcome.hsa == Some(false) => {
                "  HSA forbids it"
            }
            _ if outcome.thin_air => THIN_AIR_OBSERVED_SUFFIX,
            _ => "",
        };
        let interval = rate_interval(line, &[outcome]).map_or_else(String::new, |Interval { low, high }| {
            format!("  {lead}[{}, {}]{unit}", format_probability(low), format_probability(high))
        });
        text += &format!(
            "  {:>13}  {:>9}{interval}  {}{mark}\n",
            format_count(outcome.count),
            format_probability(Proportion::new(outcome.count, resolved).rate()),
            state::format_state(&outcome.state),
        );
    }
    let unobserved: Vec<String> = weak
        .iter()
        .filter(|o| o.allowed && !o.thin_air && o.count == 0)
        .map(|o| state::format_state(&o.state))
        .collect();
    if !unobserved.is_empty() {
        let bound = never_seen_bound(line)
            .map_or_else(String::new, |bound| format!(" (each below {}{unit})", format_probability(bound)));
        text += &format!("  allowed and never seen{bound}: {}\n", unobserved.join(", "));
    }
    text + "\n"
}

/// Formats the tests with a significant rate change.
fn format_drifts(lines: &[RunLine]) -> String {
    let mut text = String::new();
    for (line, drift, p) in significant_drifts(lines.iter()) {
        text += &format!(
            "{} on {}: the rate of {} drifted from {} to {} during the run (p = {p:.1e})\n",
            escape::escape_line(&line.id),
            escape::escape_line(&line.device),
            state::format_state(&drift.state),
            format_probability(drift.earlier),
            format_probability(drift.later),
        );
    }
    text
}

/// Formats explanations of violations, of tests without a verdict, and of instances without a result.
fn format_explanations(lines: &[RunLine], is_brief: bool) -> String {
    let is_explained = |line: &&RunLine| {
        matches!(line.verdict, VerdictWord::Violates | VerdictWord::Inconclusive) || line.not_executed > 0
    };
    let mut groups: BTreeMap<(&str, &str), Vec<&RunLine>> = BTreeMap::new();
    for line in lines.iter().filter(is_explained).filter(|line| line.verdict == VerdictWord::Inconclusive) {
        groups.entry((&line.device, line.reason.as_deref().unwrap_or_default())).or_default().push(line);
    }
    groups.retain(|_, lines| is_brief && lines.len() > MAX_NAMES);
    let is_grouped = |line: &RunLine| {
        line.verdict == VerdictWord::Inconclusive
            && groups.contains_key(&(line.device.as_str(), line.reason.as_deref().unwrap_or_default()))
    };
    let mut text: String =
        lines.iter().filter(is_explained).filter(|line| !is_grouped(line)).map(explain_verdict).collect();
    for ((device, reason), lines) in &groups {
        let names: Vec<_> = lines.iter().take(MAX_NAMES).map(|line| escape::escape_line(&line.id)).collect();
        text += &format!(
            "{} on {}: inconclusive, {}: {} and {} more (--table explains each)\n",
            plural(lines.len() as u64, "test"),
            escape::escape_line(device),
            escape::escape_line(reason),
            names.join(", "),
            lines.len() - names.len()
        );
    }
    if !text.is_empty() {
        text += "\n";
    }
    text
}

/// Formats the verdict of a test with its reason, and the command that repeats a violation.
fn explain_verdict(line: &RunLine) -> String {
    let mut text = format!(
        "{} on {}: {}",
        escape::escape_line(&line.id),
        escape::escape_line(&line.device),
        line.shown_word()
    );
    if let Some(reason) = &line.reason {
        text += &format!(", {}", escape::escape_line(reason));
    }
    if let Some(detail) = &line.detail {
        text += &format!(": {}", escape::escape_line(detail));
    }
    text += "\n";
    if line.verdict == VerdictWord::Violates {
        text += &format!("  again: {}\n", escape::escape_line(&line.replay));
    }
    text
}

/// Formats the number of verdicts of each kind in one line.
pub fn format_summary(lines: &[RunLine]) -> String {
    let number =
        |verdict: VerdictWord| lines.iter().filter(|line| line.shown_word() == verdict.name()).count();
    let unexercised = lines.iter().filter(|line| line.reason.as_deref() == Some("not exercised")).count();
    let instances = lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.instances));
    let time: f64 = lines.iter().map(|line| line.seconds).sum();
    let missing = lines.iter().filter(|line| line.has_reason(Reason::Missing)).count();
    let weak = lines.iter().filter(|line| crate::judge::is_weak_violation(line)).count();
    let weak = crate::describe_weak_violations(weak, number(VerdictWord::Violates));
    let lost = if missing > 0 { format!(", {missing} MISSING") } else { String::new() };
    let broken = lines.iter().filter(|line| line.shown_word() != line.verdict.name()).count();
    let failed = match broken {
        0 => String::new(),
        1 => ", 1 assertion fails".to_owned(),
        several => format!(", {several} assertions fail"),
    };
    format!(
        "{}: {} conforms{failed}, {} violates{weak}, {} undefined, {} inconclusive ({unexercised} not exercised{lost}), {} skipped; {} instances in {}",
        plural((lines.len() - missing) as u64, "verdict"),
        number(VerdictWord::Conforms),
        number(VerdictWord::Violates),
        number(VerdictWord::Undefined),
        number(VerdictWord::Inconclusive),
        number(VerdictWord::Skipped),
        format_count(instances),
        format_seconds(time),
    )
}
