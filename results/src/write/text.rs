//! Text output for terminals: verdicts as a table followed by weak histograms, or predictions.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, Color};

use crate::drift::significant;
use crate::judge::Reason;
use crate::mutants::Mutants;
use crate::portability::class_beside_hsa;
use crate::power;
use crate::report::{sightings, trials, weak_reproducibility, weak_seen};
use crate::show;
use crate::state;
use crate::statistics::{Proportion, never_seen_bound};
use crate::wire::{CheckLine, ProgressAnswer, RaceWord, RejectedLine, RunLine, RunOutcome, VerdictWord};
use crate::write::number::{count, plural, probability, seconds};
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
}

impl<W: Write> TextCheckWriter<W> {
    fn progress(&mut self, progress: &ProgressAnswer) -> io::Result<()> {
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
            let (thread, line, text) = (show::line(&step.thread), step.line, show::line(&step.instruction));
            writeln!(self.out, "    {indent}{thread}  line {line}: {text}{read}{written}")?;
        }
        Ok(())
    }
}

/// Suffix of an outcome that only executions with out-of-thin-air values produce.
const THIN_AIR: &str = "  thin air: no implementation is known to show it";
/// Suffix of such an outcome if a device showed it.
const THIN_AIR_SEEN: &str = "  OUT OF THIN AIR: allowed, and no implementation was known to show it";

impl<W: Write> CheckWriter for TextCheckWriter<W> {
    fn answered(&mut self, line: &CheckLine) -> io::Result<()> {
        let race = match line.race {
            _ if line.no_execution => "no execution",
            RaceWord::Free if line.race_outside_filter => "race-free inside its filter, racy outside it,",
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
        writeln!(self.out, "{}: {race} {under}{}{read}", show::line(&line.id), show::line(&line.model))?;
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
            let weak = if outcome.weak { "  weak" } else { "" };
            let filtered = if outcome.filtered { "  filtered" } else { "" };
            let thin_air = if outcome.thin_air { THIN_AIR } else { "" };
            writeln!(self.out, "  {allowed:<9}  {}{weak}{filtered}{thin_air}", state::text(&outcome.state))?;
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
            writeln!(self.out, "  {} {holds}{expected}", show::block(&query.text))?;
        }
        for finding in line.findings.iter().flatten() {
            writeln!(self.out, "  {}: {}", show::line(&finding.kind), show::line(&finding.message))?;
            for place in &finding.at {
                let file = place.file.as_deref().map(show::line).unwrap_or_default();
                let line = place.line.map_or(String::new(), |line| format!(":{line}"));
                let access = place.access.as_deref().unwrap_or("at");
                let who = place.invocation.as_deref().unwrap_or_default();
                writeln!(self.out, "    {access} {file}{line}  {}", show::line(who))?;
            }
        }
        if let Some(progress) = &line.progress {
            self.progress(progress)?;
        }
        writeln!(self.out)
    }

    /// Writes nothing, since the diagnostic goes to standard error.
    fn rejected(&mut self, _: &RejectedLine) -> io::Result<()> {
        Ok(())
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
    fn judged(&mut self, line: &RunLine) -> io::Result<()> {
        self.lines.push(line.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        write!(self.out, "{}", report(&self.lines, self.layout))?;
        self.out.flush()
    }
}

/// Up to this number of verdicts, a brief report lists all of them.
const FEW: usize = 12;

/// Formats the report: table, weak histograms, explanations, summary.
pub fn report(lines: &[RunLine], layout: TextLayout) -> String {
    let mut text = progress::report(lines, layout);
    let is_brief = layout.brief && lines.len() > FEW && text.is_empty();
    let is_told = |line: &RunLine| {
        !is_brief || matches!(line.verdict, VerdictWord::Violates | VerdictWord::Inconclusive)
    };
    if text.is_empty() && lines.iter().any(is_told) {
        text += &table(lines, &is_told, layout);
        text += "\n";
    }
    for line in lines.iter().filter(|line| !is_brief || line.verdict == VerdictWord::Violates) {
        text += &match line.shader {
            Some(_) => shader::histogram(line),
            None => weak_histogram(line),
        };
    }
    text += &format_particulars(lines);
    text += &format_drifts(lines);
    text += &summary(lines);
    text += "\n";
    text += &powers(lines);
    text
}

/// Formats the detection power of each device's run.
fn powers(lines: &[RunLine]) -> String {
    let mut text = String::new();
    for power in power::matrix().map(|matrix| power::of(matrix, lines)).unwrap_or_default() {
        let gaps = power.gaps();
        let gaps = if gaps.is_empty() { gaps } else { format!("; less than all of: {gaps}") };
        text += &format!("power on {}: {}{gaps}\n", show::line(&power.device), power.words());
    }
    text + &spreads(lines)
}

/// Formats the outcomes under another layout, which is used if the first part of a run has no weak outcome that
/// the device is known to show.
fn spreads(lines: &[RunLine]) -> String {
    let told = |line: &RunLine| {
        let spread = line.spread.as_ref()?;
        let (id, device) = (show::line(&line.id), show::line(&line.device));
        let (first, second, weak) = (count(spread.first), count(spread.second), count(spread.weak));
        Some(format!(
            "{id} on {device}: none of {first} instances weak under the first stress, {weak} of {second} with \
             other delays, distances and alignments\n"
        ))
    };
    lines.iter().filter_map(told).collect()
}

fn table(lines: &[RunLine], is_told: &dyn Fn(&RunLine) -> bool, layout: TextLayout) -> String {
    let mut table = columns::table(layout);
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
    let mutants = Mutants::of(lines);
    for line in lines.iter().filter(|line| is_told(line)) {
        let verdict = match (&line.reason, mutants.words(line)) {
            (Some(reason), _) => format!("{}: {}", line.verdict.text(), show::line(reason)),
            (None, words) if words.is_empty() => line.verdict.text().to_owned(),
            (None, words) => format!("{} ({words})", line.verdict.text()),
        };
        let colour = match line.verdict {
            VerdictWord::Conforms => Color::Green,
            VerdictWord::Violates => Color::Red,
            VerdictWord::Inconclusive => Color::Yellow,
            VerdictWord::Undefined | VerdictWord::Skipped => Color::Grey,
        };
        let verdict = if layout.colour { Cell::new(verdict).fg(colour) } else { Cell::new(verdict) };
        let (instances, interleaved, weak) = if line.verdict == VerdictWord::Skipped {
            (String::new(), String::new(), String::new())
        } else {
            let weak = weak_seen(line);
            (count(line.instances), count(line.interleaved), count(weak))
        };
        let mut row = vec![
            Cell::new(show::line(&line.id)),
            Cell::new(show::line(&line.device)),
            verdict,
            Cell::new(instances),
            Cell::new(interleaved),
            Cell::new(weak),
        ];
        if lowered {
            // If no `await` passed, the run gives little evidence.
            let waits = line.outcomes.iter().any(|outcome| outcome.filtered);
            let nobody = waits && line.hsa.as_ref().is_some_and(|hsa| hsa.passed == 0);
            let class = class_beside_hsa(line).unwrap_or_default();
            let class = if nobody { format!("{class}, no await passed") } else { class.to_owned() };
            row.push(Cell::new(show::line(&class)));
        }
        table.add_row(row);
    }
    columns::text(&table, layout)
}

/// Formats the weak outcomes of a run that observed some, with rates, and the allowed ones with count zero.
fn weak_histogram(line: &RunLine) -> String {
    let weak: Vec<&RunOutcome> = line.outcomes.iter().filter(|o| o.weak).collect();
    let seen = weak_seen(line);
    if seen == 0 {
        return String::new();
    }
    let resolved = line.instances.saturating_sub(line.unresolved);
    let (trials, surely) = (trials(line), weak_reproducibility(line).unwrap_or_default());
    let of_batches = line.batches.map_or_else(String::new, |batches| {
        let most = weak.iter().map(|outcome| sightings(outcome)).max().unwrap_or(0);
        format!(", in {} of {} independent batches", count(most), count(batches))
    });
    let mut text = format!(
        "{} on {}: weak in {} of {} instances{of_batches}, reproducibility {}\n",
        show::line(&line.id),
        show::line(&line.device),
        count(seen),
        count(resolved),
        probability(surely),
    );
    for outcome in weak.iter().filter(|o| o.count > 0) {
        let proportion = Proportion::new(sightings(outcome), trials);
        let (interval, anytime) = (proportion.interval(), proportion.anytime_interval());
        let mark = match line.verdict {
            VerdictWord::Violates if !outcome.allowed => "  FORBIDDEN",
            VerdictWord::Conforms | VerdictWord::Inconclusive if outcome.hsa == Some(false) => {
                "  HSA forbids it"
            }
            _ if outcome.thin_air => THIN_AIR_SEEN,
            _ => "",
        };
        // The count is followed by its rate. If instances of a batch are not independent, the intervals are
        // those of batches and follow the rate of batches.
        let of_batches = line.batches.map_or_else(String::new, |_| {
            let own = Proportion::new(outcome.count, resolved);
            format!("{:>9}  of batches ", probability(own.rate()))
        });
        text += &format!(
            "  {:>13}  {of_batches}{:>9}  [{}, {}], anytime [{}, {}]  {}{mark}\n",
            count(outcome.count),
            probability(proportion.rate()),
            probability(interval.low),
            probability(interval.high),
            probability(anytime.low),
            probability(anytime.high),
            state::text(&outcome.state),
        );
    }
    let never: Vec<String> = weak
        .iter()
        .filter(|o| o.allowed && !o.thin_air && o.count == 0)
        .map(|o| state::text(&o.state))
        .collect();
    if !never.is_empty() {
        let unit = if line.batches.is_some() { " of batches" } else { "" };
        text += &format!(
            "  allowed and never seen (each below {}, anytime {}{unit}): {}\n",
            probability(never_seen_bound(trials)),
            probability(Proportion::new(0, trials).anytime_interval().high),
            never.join(", ")
        );
    }
    text + "\n"
}

/// Formats the tests with a significant rate change.
fn format_drifts(lines: &[RunLine]) -> String {
    let mut text = String::new();
    for (line, drift, p) in significant(lines.iter()) {
        text += &format!(
            "{} on {}: the rate of {} drifted from {} to {} during the run (p = {p:.1e})\n",
            show::line(&line.id),
            show::line(&line.device),
            state::text(&drift.state),
            probability(drift.earlier),
            probability(drift.later),
        );
    }
    text
}

/// Formats explanations of violations, of tests without a verdict, and of instances without a result.
fn format_particulars(lines: &[RunLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let told = matches!(line.verdict, VerdictWord::Violates | VerdictWord::Inconclusive);
        if !told && line.not_executed == 0 {
            continue;
        }
        text += &format!("{} on {}: {}", show::line(&line.id), show::line(&line.device), line.verdict.text());
        if let Some(reason) = &line.reason {
            text += &format!(", {}", show::line(reason));
        }
        if let Some(detail) = &line.detail {
            text += &format!(": {}", show::line(detail));
        }
        text += "\n";
        if line.verdict == VerdictWord::Violates {
            text += &format!("  again: {}\n", show::line(&line.replay));
        }
    }
    if !text.is_empty() {
        text += "\n";
    }
    text
}

/// Formats the number of verdicts of each kind in one line.
pub fn summary(lines: &[RunLine]) -> String {
    let number = |verdict: VerdictWord| lines.iter().filter(|line| line.verdict == verdict).count();
    let unexercised = lines.iter().filter(|line| line.reason.as_deref() == Some("not exercised")).count();
    let instances = lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.instances));
    let time: f64 = lines.iter().map(|line| line.seconds).sum();
    let missing = lines.iter().filter(|line| line.reason.as_deref() == Some(Reason::Missing.word())).count();
    let lost = if missing > 0 { format!(", {missing} MISSING") } else { String::new() };
    format!(
        "{}: {} conforms, {} violates, {} undefined, {} inconclusive ({unexercised} not exercised{lost}), {} skipped; {} instances in {}",
        plural((lines.len() - missing) as u64, "verdict"),
        number(VerdictWord::Conforms),
        number(VerdictWord::Violates),
        number(VerdictWord::Undefined),
        number(VerdictWord::Inconclusive),
        number(VerdictWord::Skipped),
        count(instances),
        seconds(time),
    )
}
