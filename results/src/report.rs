//! Results of one or several runs laid side by side: tests down, devices across. Every report format is written from this.

use std::collections::{BTreeMap, BTreeSet};

use crate::read::Results;
use crate::state;
use crate::statistics::{Interval, Proportion, never_seen_bound, reproducibility};
use crate::wire::{DeviceRecord, EnvironmentRecord, MachineCodeLine, RunLine, RunOutcome, VerdictWord};

/// Results side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The devices of the first results, then those of the second, and so on.
    pub devices: Vec<Column>,
    /// The tests, in the order in which plans name them first.
    pub tests: Vec<Row>,
}

/// A device in one set of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name; with its driver, and a number if need be, where two columns have the same one.
    pub label: String,
    /// Who it is; nothing where the results have no plan.
    pub record: Option<DeviceRecord>,
    /// Version of the tool that ran the tests; empty where the results do not say.
    pub tool: String,
    /// The seeds of its verdicts.
    pub seeds: BTreeSet<u64>,
    /// How long or how often each test was run; empty where the results do not say.
    pub budget: String,
    /// The stress, by name.
    pub stress: String,
    /// What surrounded the run, where the results say.
    pub environment: Option<EnvironmentRecord>,
    /// Tests of the plan without a verdict, whose lines say `missing`.
    pub unfinished: usize,
}

/// A test, with a verdict for each device that it was run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Test id.
    pub id: String,
    /// The name in its header.
    pub name: String,
    /// Its text; empty where the results do not hold it.
    pub text: String,
    /// The clauses that it names.
    pub clauses: Vec<String>,
    /// BLAKE3 hash of its text; empty where the results do not say. Tests of one id and different texts are different rows.
    pub hash: String,
    /// One for each device.
    pub cells: Vec<Option<RunLine>>,
    /// What compilers made of it where it violates, each with the index of the device.
    pub machine_code: Vec<(usize, MachineCodeLine)>,
}

impl Row {
    /// The family: the first folder of the id.
    pub fn family(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |_| self.id.split('/').next().unwrap_or_default())
    }

    /// Whether devices differ: in their verdicts, or in which weak or forbidden outcomes they showed.
    pub fn differs(&self) -> bool {
        let mut shown =
            self.cells.iter().flatten().filter(|line| line.verdict != VerdictWord::Skipped).map(|line| {
                let seen: BTreeSet<String> = line
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.count > 0 && (outcome.weak || !outcome.allowed))
                    .map(|outcome| state::text(&outcome.state))
                    .collect();
                (line.verdict, seen)
            });
        shown.next().is_some_and(|first| shown.any(|other| other != first))
    }
}

/// What an outcome is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Allowed, and sequential consistency produces it too.
    Ordinary,
    /// Allowed, or of a racy program, and not producible under sequential consistency.
    Weak,
    /// Not allowed, of a program that does not race.
    Forbidden,
    /// Values that no candidate execution produces.
    Unexpected,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [Kind::Ordinary, Kind::Weak, Kind::Forbidden, Kind::Unexpected];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Ordinary => "allowed",
            Kind::Weak => "weak",
            Kind::Forbidden => "forbidden",
            Kind::Unexpected => "from nowhere",
        }
    }

    /// A sign that tells it from the others without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Kind::Ordinary => "○",
            Kind::Weak => "◆",
            Kind::Forbidden => "✖",
            Kind::Unexpected => "‼",
        }
    }
}

/// An outcome of a histogram with how sure one may be of its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is to the model.
    pub kind: Kind,
    /// The outcome on one line.
    pub outcome: String,
    /// How often it was seen.
    pub count: u64,
    /// How often in each resolved instance.
    pub rate: f64,
    /// The 95 % interval of the rate, of batches where these are what is independent; of weak, forbidden and unexpected
    /// outcomes that were seen.
    pub interval: Option<Interval>,
    /// The same, valid whenever somebody stops ([`Proportion::anytime_interval`]); of what was never seen too.
    pub anytime: Option<Interval>,
    /// The bound that the rate of what was never seen stays below.
    pub bound: Option<f64>,
    /// Whether interval and bound speak of independent batches, not of instances.
    pub of_batches: bool,
    /// Whether the test's filter excludes it.
    pub filtered: bool,
}

/// What is independent in a run: its batches where the instances of one share choices of the device, else its resolved
/// instances.
pub fn trials(line: &RunLine) -> u64 {
    line.batches.unwrap_or_else(|| line.instances.saturating_sub(line.unresolved))
}

/// How many of the [`trials`] showed an outcome.
pub fn sightings(outcome: &RunOutcome) -> u64 {
    outcome.batches.unwrap_or(outcome.count)
}

/// The histogram of a verdict: the outcomes of the prediction in their order, then what is none of them.
pub fn bars(line: &RunLine) -> Vec<Bar> {
    let resolved = line.instances.saturating_sub(line.unresolved);
    let trials = trials(line);
    let bar = |kind: Kind, outcome: String, count: u64, sightings: Option<u64>, filtered: bool| Bar {
        kind,
        outcome,
        count,
        rate: Proportion::new(count, resolved).rate(),
        interval: sightings
            .filter(|_| count > 0 && kind != Kind::Ordinary)
            .map(|sightings| Proportion::new(sightings, trials).interval()),
        anytime: sightings
            .filter(|_| count == 0 || kind != Kind::Ordinary)
            .map(|sightings| Proportion::new(sightings, trials).anytime_interval()),
        bound: (count == 0).then(|| never_seen_bound(trials)),
        of_batches: line.batches.is_some(),
        filtered,
    };
    let sightings = |outcome: &RunOutcome| match line.batches {
        Some(_) => outcome.batches,
        None => Some(outcome.count),
    };
    let listed = line.outcomes.iter().filter(|outcome| !outcome.thin_air || outcome.count > 0);
    let predicted = listed.map(|outcome| {
        // What is seen of a racy program, or under a prediction that was cut short, is not judged.
        let judged = match line.verdict {
            VerdictWord::Undefined => false,
            VerdictWord::Violates => true,
            _ => outcome.count == 0,
        };
        let kind = match (outcome.allowed, outcome.weak) {
            (false, _) if judged => Kind::Forbidden,
            (_, true) => Kind::Weak,
            (_, false) => Kind::Ordinary,
        };
        bar(kind, state::text(&outcome.state), outcome.count, sightings(outcome), outcome.filtered)
    });
    let unexpected = line.unexpected.iter().map(|values| {
        let raw: Vec<String> = values.raw.iter().map(u64::to_string).collect();
        // Nobody counts the batches of these.
        let sightings = line.batches.is_none().then_some(values.count);
        bar(Kind::Unexpected, raw.join(" "), values.count, sightings, false)
    });
    predicted.chain(unexpected).collect()
}

/// How often weak outcomes were seen.
pub fn weak_seen(line: &RunLine) -> u64 {
    line.outcomes
        .iter()
        .filter(|outcome| outcome.weak)
        .fold(0, |sum, outcome| sum.saturating_add(outcome.count))
}

/// The field's reproducibility score of the weak outcomes of a verdict; nothing where none was seen. Where batches are what
/// is independent, at least as many showed some weak outcome as showed the most frequent one.
pub fn weak_reproducibility(line: &RunLine) -> Option<f64> {
    let seen = weak_seen(line);
    let most =
        || line.outcomes.iter().filter(|outcome| outcome.weak).filter_map(|outcome| outcome.batches).max();
    let sightings = if line.batches.is_some() { most().unwrap_or_default() } else { seen };
    (seen > 0).then(|| reproducibility(sightings))
}

/// Counts of a group of tests on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Verdicts by word, in the order of [`VERDICTS`].
    pub verdicts: [usize; 5],
    /// Those of `inconclusive` that were not exercised.
    pub unexercised: usize,
    /// Tests that showed a weak outcome.
    pub weak: usize,
    /// Tests that allow a weak outcome and showed none.
    pub weak_unseen: usize,
    /// Instances.
    pub instances: u64,
    /// Instances whose outcome no serial order of whole threads produces.
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
        let seen = weak_seen(line) > 0;
        self.weak += usize::from(seen);
        self.weak_unseen += usize::from(allows_weak && !seen);
        self.instances = self.instances.saturating_add(line.instances);
        self.interleaved = self.interleaved.saturating_add(line.interleaved);
    }

    /// How many verdicts of a word.
    pub fn of(&self, verdict: VerdictWord) -> usize {
        VERDICTS.iter().position(|known| *known == verdict).map_or(0, |index| self.verdicts[index])
    }
}

/// Tallies of groups of tests: a name, the number of tests, and a tally for each device.
pub type Groups = Vec<(String, usize, Vec<Tally>)>;

impl Report {
    /// Lays results side by side.
    pub fn new(all: &[Results]) -> Report {
        let mut report = Report::default();
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        let columns: Vec<Vec<String>> = all.iter().map(device_names).collect();
        let width = columns.iter().map(Vec::len).sum();
        let mut first = 0;
        for (results, names) in all.iter().zip(&columns) {
            report.devices.extend(names.iter().map(|name| column(results, name)));
            if let Some(plan) = &results.plan {
                for test in &plan.tests {
                    let row = report.row(&mut known, &test.id, &test.hash, width);
                    row.name.clone_from(&test.name);
                    row.text.clone_from(&test.text);
                    row.clauses.clone_from(&test.clauses);
                }
            }
            for line in &results.every() {
                let Some(place) = names.iter().position(|name| *name == line.device) else { continue };
                let row = report.row(&mut known, &line.id, &line.hashes.test, width);
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
        report.tell_apart();
        report
    }

    fn row(
        &mut self,
        known: &mut BTreeMap<(String, String), usize>,
        id: &str,
        hash: &str,
        width: usize,
    ) -> &mut Row {
        let index = *known.entry((id.to_owned(), hash.to_owned())).or_insert_with(|| {
            self.tests.push(Row {
                id: id.to_owned(),
                name: String::new(),
                text: String::new(),
                clauses: Vec::new(),
                hash: hash.to_owned(),
                cells: vec![None; width],
                machine_code: Vec::new(),
            });
            self.tests.len() - 1
        });
        &mut self.tests[index]
    }

    /// Gives every column a label of its own, and the verdicts below it the same.
    fn tell_apart(&mut self) {
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

    /// Every verdict, device by device and test by test.
    pub fn lines(&self) -> impl Iterator<Item = &RunLine> {
        (0..self.devices.len())
            .flat_map(|device| self.tests.iter().filter_map(move |row| row.cells.get(device)?.as_ref()))
    }

    /// Tallies of all tests.
    pub fn totals(&self) -> Vec<Tally> {
        tally(&self.tests.iter().collect::<Vec<&Row>>(), self.devices.len())
    }

    /// Tallies by family, in the order of names.
    pub fn families(&self) -> Groups {
        self.groups(|row| vec![row.family()])
    }

    /// Tallies by clause, in the order of names. A test counts under each clause that it names.
    pub fn clauses(&self) -> Groups {
        self.groups(|row| row.clauses.iter().map(String::as_str).collect())
    }

    fn groups<'a>(&'a self, names: impl Fn(&'a Row) -> Vec<&'a str>) -> Groups {
        let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in &self.tests {
            for name in names(row) {
                groups.entry(name).or_default().push(row);
            }
        }
        groups
            .into_iter()
            .map(|(name, rows)| {
                let name = if name.is_empty() { "no family" } else { name };
                (name.to_owned(), rows.len(), tally(&rows, self.devices.len()))
            })
            .collect()
    }
}

fn tally(rows: &[&Row], width: usize) -> Vec<Tally> {
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

/// The devices of a plan; without one those of the lines, as they come.
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

fn column(results: &Results, name: &str) -> Column {
    let lines = || results.lines.iter().filter(|line| line.device == name);
    let plan = results.plan.as_ref();
    let seeds: BTreeSet<u64> = lines().map(|line| line.seed).collect();
    let record = plan.and_then(|plan| plan.devices.iter().find(|device| device.name == name)).cloned();
    Column {
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
