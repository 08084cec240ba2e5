//! The report: results of several runs as a table with tests as rows and devices as columns. Every report
//! format is written from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::number::format_count;
use crate::read::Results;
use crate::state;
use crate::statistics::parts::{self, PartCounts};
use crate::statistics::{Interval, Proportion, zero_count_bound};
use crate::wire::{
    DeviceRecord, EnvironmentRecord, MachineCodeLine, PartUnit, RunLine, RunOutcome, RunParts, VerdictWord,
};
use litmus::closed_enum;

/// Results of several runs in one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The devices of all results, in the order of the results.
    pub devices: Vec<DeviceColumn>,
    /// The tests, in order of first appearance in the plans.
    pub tests: Vec<TestRow>,
}

/// A device in one set of results.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceColumn {
    /// Name of the device; if two columns share it, with the driver and, if needed, a number.
    pub label: String,
    /// Properties of the device; `None` if the results have no plan.
    pub record: Option<DeviceRecord>,
    /// Version of the tool that ran the tests; empty if unknown.
    pub tool: String,
    /// The seeds of the verdicts.
    pub seeds: BTreeSet<u64>,
    /// Time or instances for each test; empty if unknown.
    pub budget: String,
    /// Names of the stress presets.
    pub stress: String,
    /// Environment of the run, if recorded.
    pub environment: Option<EnvironmentRecord>,
    /// Number of tests of the plan without a verdict; their lines have the reason `missing`.
    pub unfinished: usize,
}

/// A test with its verdict on each device.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TestRow {
    /// Test id.
    pub id: String,
    /// Name in the header of the test.
    pub name: String,
    /// Text of the test; empty if the results lack it.
    pub text: String,
    /// Clauses of the specification that the test names.
    pub clauses: Vec<String>,
    /// BLAKE3 hash of the text; empty if unknown. Equal ids with different hashes are different rows.
    pub hash: String,
    /// One verdict for each column; `None` if the test did not run there.
    pub cells: Vec<Option<RunLine>>,
    /// Machine code of a violating test, each with the index of its column.
    pub machine_code: Vec<(usize, MachineCodeLine)>,
}

impl TestRow {
    /// Returns the family: the first folder of the id.
    pub fn family(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |_| self.id.split('/').next().unwrap_or_default())
    }

    /// Returns true if devices differ in the verdict or in the observed weak or forbidden outcomes.
    pub fn has_differences(&self) -> bool {
        let mut shown =
            self.cells.iter().flatten().filter(|line| line.verdict != VerdictWord::Skipped).map(|line| {
                let seen: BTreeSet<String> = line
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.count > 0 && (outcome.weak || !outcome.allowed))
                    .map(|outcome| state::format_state(&outcome.state))
                    .collect();
                (line.verdict, seen)
            });
        shown.next().is_some_and(|first| shown.any(|other| other != first))
    }
}

closed_enum! {
    /// Classification of an outcome by the model.
    pub enum OutcomeClass {
        /// Allowed, and reachable under sequential consistency.
        Ordinary = "allowed",
        /// Allowed, or of a racy program, and unreachable under sequential consistency.
        Weak = "weak",
        /// Forbidden, of a race-free program.
        Forbidden = "forbidden",
        /// Values that no candidate execution produces.
        Unexpected = "from nowhere",
        /// Contents of a shader that the model did not judge.
        NotJudged = "not judged",
    }
}

impl OutcomeClass {
    /// A symbol that distinguishes the class without colour.
    pub fn symbol(self) -> &'static str {
        match self {
            OutcomeClass::Ordinary => "○",
            OutcomeClass::Weak => "◆",
            OutcomeClass::Forbidden => "✖",
            OutcomeClass::Unexpected => "‼",
            OutcomeClass::NotJudged => "·",
        }
    }
}

/// An outcome of a histogram with statistical bounds on its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramBar {
    /// Class of the outcome.
    pub kind: OutcomeClass,
    /// The outcome on one line.
    pub outcome: String,
    /// Number of instances with it.
    pub count: u64,
    /// Count divided by resolved instances.
    pub rate: f64,
    /// The 95 % interval of the rate, or of the share of batches if the run has batches; only for observed outcomes.
    /// `None` without batches or parts.
    pub interval: Option<Interval>,
    /// Upper bound on the rate of an outcome with count zero.
    pub bound: Option<f64>,
    /// Whether the bounds are of batches instead of instances.
    pub counts_batches: bool,
    /// Whether the test's filter excludes it.
    pub is_filtered: bool,
}

/// Returns the counts of an outcome, or of several, in the parts of a run.
fn sum_parts<'a>(line: &RunLine, outcomes: impl Iterator<Item = &'a RunOutcome>) -> Option<PartCounts> {
    let instances = &line.parts.as_ref()?.instances;
    let mut sums = vec![0; instances.len()];
    for outcome in outcomes {
        if outcome.parts.len() != sums.len() {
            return None;
        }
        sums.iter_mut().zip(&outcome.parts).for_each(|(sum, count)| *sum += count);
    }
    PartCounts::new(&sums, instances)
}

/// Returns the 95 % interval of the rate of observed outcomes together, or of the share of batches with the one that
/// most batches show; `None` without parts and batches.
pub fn rate_interval(line: &RunLine, outcomes: &[&RunOutcome]) -> Option<Interval> {
    match line.batches {
        Some(batches) => {
            let sightings = outcomes.iter().filter_map(|outcome| outcome.batches).max()?;
            Some(Proportion::new(sightings, batches).interval()).filter(|_| batches > 1)
        }
        None => {
            let counts = sum_parts(line, outcomes.iter().copied())?;
            match line.parts.as_ref()?.unit {
                PartUnit::Part => counts.interval(),
                PartUnit::Run => counts.run_interval(),
            }
        }
    }
}

/// Returns the upper bound at 95 % on the rate of an outcome with count zero, or on the share of batches.
pub fn never_seen_bound(line: &RunLine) -> Option<f64> {
    if let Some(batches) = line.batches {
        return Some(zero_count_bound(batches)).filter(|_| batches > 1);
    }
    let observed = line.outcomes.iter().filter(|outcome| outcome.count > 0);
    let observed: Vec<PartCounts> =
        observed.filter_map(|outcome| sum_parts(line, std::iter::once(outcome))).collect();
    parts::zero_count_bound(&line.parts.as_ref()?.instances, &observed)
}

/// Returns what the intervals of a run are computed from, in words.
pub fn interval_source(line: &RunLine) -> String {
    match (line.batches, &line.parts) {
        (Some(1), _) => "no intervals: the run has one batch".to_owned(),
        (Some(batches), _) => format!("intervals of {} independent batches", format_count(batches)),
        (None, Some(RunParts { unit: PartUnit::Part, instances })) => {
            format!("intervals of this run alone, from {} parts", instances.len())
        }
        (None, Some(RunParts { unit: PartUnit::Run, instances })) => {
            format!("intervals of another run, from {} runs", instances.len())
        }
        (None, None) => "no intervals: the run has no repeated parts".to_owned(),
    }
}

/// Returns the histogram of a verdict: predicted outcomes in their order, then unexpected values.
pub fn histogram_bars(line: &RunLine) -> Vec<HistogramBar> {
    let resolved = line.instances.saturating_sub(line.unresolved);
    let bound = never_seen_bound(line);
    let bar = |kind, outcome, count, interval, is_filtered| HistogramBar {
        kind,
        outcome,
        count,
        rate: Proportion::new(count, resolved).rate(),
        interval,
        bound: bound.filter(|_| count == 0),
        counts_batches: line.batches.is_some(),
        is_filtered,
    };
    let listed = line.outcomes.iter().filter(|outcome| !outcome.thin_air || outcome.count > 0);
    let predicted = listed.map(|outcome| {
        // Observed outcomes of a racy program, or under an incomplete prediction, are not called forbidden.
        let judged = match line.verdict {
            VerdictWord::Undefined => false,
            VerdictWord::Violates => true,
            _ => outcome.count == 0,
        };
        let kind = match (outcome.allowed, outcome.weak) {
            _ if !line.has_judged_outcomes() => OutcomeClass::NotJudged,
            (false, _) if judged => OutcomeClass::Forbidden,
            (_, true) => OutcomeClass::Weak,
            (_, false) => OutcomeClass::Ordinary,
        };
        let interval = rate_interval(line, &[outcome]).filter(|_| outcome.count > 0);
        bar(kind, state::format_state(&outcome.state), outcome.count, interval, outcome.filtered)
    });
    let unexpected = line.unexpected.iter().map(|values| {
        let raw: Vec<String> = values.raw.iter().map(u64::to_string).collect();
        // Records have no counts of parts or batches for unexpected values.
        bar(OutcomeClass::Unexpected, raw.join(" "), values.count, None, false)
    });
    predicted.chain(unexpected).collect()
}

/// Returns the number of instances with a weak outcome.
pub fn count_weak(line: &RunLine) -> u64 {
    line.outcomes
        .iter()
        .filter(|outcome| outcome.weak)
        .fold(0, |sum, outcome| sum.saturating_add(outcome.count))
}

/// Returns the reproducibility of the weak outcomes of a verdict: the probability to observe one again in a run of
/// the same length. `None` if none was observed, or without batches and parts.
///
/// With batches it is a lower bound: it uses the most frequent weak outcome, and the batches with any weak outcome
/// are at least as many.
pub fn weak_reproducibility(line: &RunLine) -> Option<f64> {
    let weak = || line.outcomes.iter().filter(|outcome| outcome.weak);
    if count_weak(line) == 0 {
        return None;
    }
    match line.batches {
        Some(_) => {
            let sightings = weak().filter_map(|outcome| outcome.batches).max().unwrap_or_default();
            Some(1.0 - parts::absence_probability(sightings as f64, 1.0, 0.0))
        }
        None => Some(sum_parts(line, weak())?.reproducibility()),
    }
}

/// Counts over a group of tests on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of verdicts by word, in the order of [`VERDICTS`].
    pub verdicts: [usize; 5],
    /// Number of `inconclusive` verdicts with the reason `not exercised`.
    pub unexercised: usize,
    /// Number of tests with an observed weak outcome.
    pub weak: usize,
    /// Number of tests that allow a weak outcome and showed none.
    pub weak_unseen: usize,
    /// Number of instances.
    pub instances: u64,
    /// Number of instances whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
}

/// The verdicts, worst first.
pub const VERDICTS: [VerdictWord; 5] = [
    VerdictWord::Violates,
    VerdictWord::Inconclusive,
    VerdictWord::Undefined,
    VerdictWord::Conforms,
    VerdictWord::Skipped,
];

impl Tally {
    /// Adds a verdict.
    pub fn add(&mut self, line: &RunLine) {
        for (count, verdict) in self.verdicts.iter_mut().zip(VERDICTS) {
            *count += usize::from(verdict == line.verdict);
        }
        self.unexercised += usize::from(line.reason.as_deref() == Some("not exercised"));
        let allows_weak =
            line.outcomes.iter().any(|outcome| outcome.weak && outcome.allowed && !outcome.thin_air);
        let seen = count_weak(line) > 0;
        self.weak += usize::from(seen);
        self.weak_unseen += usize::from(allows_weak && !seen);
        self.instances = self.instances.saturating_add(line.instances);
        self.interleaved = self.interleaved.saturating_add(line.interleaved);
    }

    /// Returns the number of verdicts with this word.
    pub fn verdict_count(&self, verdict: VerdictWord) -> usize {
        VERDICTS.iter().position(|known| *known == verdict).map_or(0, |index| self.verdicts[index])
    }
}

/// Tallies by group: name, number of tests, and one tally for each device.
pub type TallyGroups = Vec<(String, usize, Vec<Tally>)>;

impl Report {
    /// Builds the table of all results.
    pub fn new(all: &[Results]) -> Report {
        let mut report = Report::default();
        let mut row_indices: BTreeMap<(String, String), usize> = BTreeMap::new();
        let columns: Vec<Vec<String>> = all.iter().map(device_names).collect();
        let width = columns.iter().map(Vec::len).sum();
        let mut first = 0;
        for (results, names) in all.iter().zip(&columns) {
            report.devices.extend(names.iter().map(|name| build_column(results, name)));
            if let Some(plan) = &results.plan {
                for test in &plan.tests {
                    let row = report.row_mut(&mut row_indices, &test.id, &test.hash, width);
                    row.name.clone_from(&test.name);
                    row.text.clone_from(&test.text);
                    row.clauses.clone_from(&test.clauses);
                }
            }
            for line in &results.complete_lines() {
                let Some(place) = names.iter().position(|name| *name == line.device) else { continue };
                let row = report.row_mut(&mut row_indices, &line.id, &line.hashes.test, width);
                if row.name.is_empty() {
                    row.name.clone_from(&line.name);
                }
                if let Some(cell) = row.cells.get_mut(first + place) {
                    *cell = Some(line.clone());
                }
            }
            for code in &results.machine_code {
                let Some(place) = names.iter().position(|name| *name == code.device) else { continue };
                let row = report.tests.iter_mut().find(|row| {
                    row.id == code.id && row.cells.get(first + place).is_some_and(Option::is_some)
                });
                if let Some(row) = row {
                    row.machine_code.push((first + place, code.clone()));
                }
            }
            first += names.len();
        }
        report.make_labels_unique();
        report
    }

    fn row_mut(
        &mut self,
        known: &mut BTreeMap<(String, String), usize>,
        id: &str,
        hash: &str,
        width: usize,
    ) -> &mut TestRow {
        let index = *known.entry((id.to_owned(), hash.to_owned())).or_insert_with(|| {
            self.tests.push(TestRow {
                id: id.to_owned(),
                hash: hash.to_owned(),
                cells: vec![None; width],
                ..TestRow::default()
            });
            self.tests.len() - 1
        });
        &mut self.tests[index]
    }

    /// Makes column labels unique, and sets them as device names of the verdicts.
    fn make_labels_unique(&mut self) {
        let names: Vec<String> = self.devices.iter().map(|device| device.label.clone()).collect();
        let shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
        for device in self.devices.iter_mut().filter(|device| shared(&device.label)) {
            let driver = device.record.as_ref().map(|record| record.driver_info.trim()).unwrap_or_default();
            if !driver.is_empty() {
                device.label = format!("{} ({driver})", device.label);
            }
        }
        let mut taken = BTreeSet::new();
        for device in &mut self.devices {
            let base = device.label.clone();
            let mut number = 2;
            while !taken.insert(device.label.clone()) {
                device.label = format!("{base} #{number}");
                number += 1;
            }
        }
        for row in &mut self.tests {
            for (device, cell) in self.devices.iter().zip(&mut row.cells) {
                if let Some(line) = cell {
                    line.device.clone_from(&device.label);
                }
            }
        }
    }

    /// Iterates over every verdict, by device and then by test.
    pub fn lines(&self) -> impl Iterator<Item = &RunLine> {
        (0..self.devices.len())
            .flat_map(|device| self.tests.iter().filter_map(move |row| row.cells.get(device)?.as_ref()))
    }

    /// Returns the tallies of all tests.
    pub fn totals(&self) -> Vec<Tally> {
        tally_rows(&self.tests.iter().collect::<Vec<&TestRow>>(), self.devices.len())
    }

    /// Returns the tallies by family, sorted by name.
    pub fn families(&self) -> TallyGroups {
        self.groups(|row| vec![row.family()])
    }

    /// Returns the tallies by clause, sorted by name. A test counts for each clause that it names.
    pub fn clauses(&self) -> TallyGroups {
        self.groups(|row| row.clauses.iter().map(String::as_str).collect())
    }

    fn groups<'a>(&'a self, names: impl Fn(&'a TestRow) -> Vec<&'a str>) -> TallyGroups {
        let mut groups: BTreeMap<&str, Vec<&TestRow>> = BTreeMap::new();
        for row in &self.tests {
            for name in names(row) {
                groups.entry(name).or_default().push(row);
            }
        }
        groups
            .into_iter()
            .map(|(name, rows)| {
                let name = if name.is_empty() { "no family" } else { name };
                (name.to_owned(), rows.len(), tally_rows(&rows, self.devices.len()))
            })
            .collect()
    }
}

fn tally_rows(rows: &[&TestRow], width: usize) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); width];
    for row in rows {
        for (tally, cell) in tallies.iter_mut().zip(&row.cells) {
            if let Some(line) = cell {
                tally.add(line);
            }
        }
    }
    tallies
}

/// Returns the device names of the plan; without a plan, those of the lines in order of appearance.
pub(crate) fn device_names(results: &Results) -> Vec<String> {
    if let Some(plan) = &results.plan {
        return plan.devices.iter().map(|device| device.name.clone()).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for line in &results.lines {
        if !names.contains(&line.device) {
            names.push(line.device.clone());
        }
    }
    names
}

fn build_column(results: &Results, name: &str) -> DeviceColumn {
    let lines = || results.lines.iter().filter(|line| line.device == name);
    let plan = results.plan.as_ref();
    let seeds: BTreeSet<u64> = lines().map(|line| line.seed).collect();
    let record = plan.and_then(|plan| plan.devices.iter().find(|device| device.name == name)).cloned();
    DeviceColumn {
        label: name.to_owned(),
        record,
        tool: plan
            .map(|plan| plan.tool.clone())
            .or_else(|| lines().next().map(|line| line.tool.clone()))
            .unwrap_or_default(),
        seeds: if seeds.is_empty() { plan.map(|plan| plan.seed).into_iter().collect() } else { seeds },
        budget: plan.map(|plan| plan.budget.clone()).unwrap_or_default(),
        stress: lines().next().map(|line| line.stress.clone()).unwrap_or_default(),
        environment: plan.and_then(|plan| plan.environment.clone()),
        unfinished: plan.map_or(0, |plan| plan.tests.len().saturating_sub(lines().count())),
    }
}
