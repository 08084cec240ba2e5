//! The power of a run: which known faults it could have found.
//!
//! A campaign on the simulated GPU gives it each of its faults in turn, runs every test of the corpus, and notes from how
//! many instances on a test breaks: the [`Matrix`], which is kept in `results/power/` and is part of the program. Beside
//! it, a run is worth the faults that its tests find there at no more instances than they were run with here. That is a
//! statement about tests and counts. It is no probability that a device is right: whose fault is none of these, or shows
//! less often than in the simulated GPU, is not covered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{RunLine, VerdictWord};
use crate::write::number::count;

/// The version of the matrix.
pub const MATRIX_SCHEMA: &str = "vk-litmus/power/1";
/// The committed one.
pub const MATRIX: &str = include_str!("../power/faults.json");

/// Tests that would have found a missed fault, of which no more are named.
const MOST_NAMED: usize = 4;

/// Which tests find which faults of the simulated GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Matrix {
    /// [`MATRIX_SCHEMA`].
    pub schema: String,
    /// Instances with which every test was asked; then, for faults that few tests had found, the others with more.
    pub steps: Vec<u64>,
    /// A fault that so many tests have found is not searched for with more instances.
    pub enough: usize,
    /// Seeds that all have to find a fault.
    pub seeds: u64,
    /// Every test that was asked, by id, in the order of the suites.
    pub tests: Vec<Asked>,
    /// Every fault.
    pub faults: Vec<FaultRow>,
}

/// A test that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Test id.
    pub id: String,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// Hash of what the simulated GPU without a fault shows of it with one seed: another machine, another matrix.
    pub shows: String,
}

/// A fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRow {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub family: String,
    /// Which rule it breaks.
    pub rule: String,
    /// `violates` or `inconclusive`; `invisible` for what no race-free test can tell, which nobody counts.
    pub expect: String,
    /// By instances: the tests that find it within as many, each under the least.
    pub found_by: BTreeMap<u64, Vec<String>>,
}

impl FaultRow {
    /// Whether a test can tell it at all.
    pub fn is_visible(&self) -> bool {
        self.expect != "invisible"
    }

    /// How many instances of a test find it, where it does.
    pub fn instances_of(&self, test: &str) -> Option<u64> {
        let found = self.found_by.iter().find(|(_, tests)| tests.iter().any(|id| id == test));
        found.map(|(instances, _)| *instances)
    }
}

/// The matrix that is part of the program; none where it cannot be read, which a test rules out.
pub fn matrix() -> Option<&'static Matrix> {
    static SHIPPED: LazyLock<Option<Matrix>> = LazyLock::new(|| serde_json::from_str(MATRIX).ok());
    SHIPPED.as_ref()
}

/// What a run on one device could have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// The device.
    pub device: String,
    /// Faults of the simulated GPU that tests of this run find there at no more instances than they were run with here.
    pub found: usize,
    /// Faults of the simulated GPU that some test can find.
    pub known: usize,
    /// The same by what they are about.
    pub families: Vec<FamilyPower>,
    /// The others.
    pub missed: Vec<Missed>,
}

/// The power over the faults of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyPower {
    /// What they are about.
    pub family: String,
    /// As of the whole.
    pub found: usize,
    /// As of the whole.
    pub known: usize,
}

/// A fault that the run could not have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// The fault.
    pub fault: String,
    /// What it is about.
    pub family: String,
    /// Which rule it breaks.
    pub rule: String,
    /// Why: `no test of it was run`, `not exercised`, or `too few instances`; the nearest of these.
    pub why: String,
    /// Tests that would have found it, with the instances that they need; those that need the fewest.
    pub would: Vec<Needed>,
}

/// A test that finds a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Test id.
    pub test: String,
    /// Instances that it needs.
    pub instances: u64,
}

/// The power of the verdicts of each device, in the order in which devices come. Devices none of whose tests the matrix knows
/// are left out.
pub fn of<'a>(matrix: &Matrix, lines: impl IntoIterator<Item = &'a RunLine>) -> Vec<Power> {
    let hashes: BTreeMap<&str, &str> =
        matrix.tests.iter().map(|test| (test.id.as_str(), test.hash.as_str())).collect();
    let mut devices: Vec<(&str, BTreeMap<&str, &RunLine>)> = Vec::new();
    for line in lines {
        // Another text is another test; older records do not say.
        let same = |hash: &str| line.hashes.test.is_empty() || line.hashes.test == hash;
        if line.progress.is_some() || !hashes.get(line.id.as_str()).is_some_and(|hash| same(hash)) {
            continue;
        }
        match devices.iter_mut().find(|(device, _)| *device == line.device) {
            Some((_, ran)) => {
                ran.insert(&line.id, line);
            }
            None => devices.push((&line.device, BTreeMap::from([(line.id.as_str(), line)]))),
        }
    }
    devices.into_iter().map(|(device, ran)| of_device(matrix, device, &ran)).collect()
}

fn of_device(matrix: &Matrix, device: &str, ran: &BTreeMap<&str, &RunLine>) -> Power {
    let mut power = Power { device: device.to_owned(), ..Power::default() };
    for fault in matrix.faults.iter().filter(|fault| fault.is_visible()) {
        let reach = fault.found_by.iter().flat_map(|(instances, tests)| {
            tests.iter().map(|test| reach(*instances, ran.get(test.as_str()).copied()))
        });
        let best = reach.max().unwrap_or(Reach::NotRun);
        let family = match power.families.iter_mut().find(|known| known.family == fault.family) {
            Some(family) => family,
            None => {
                power.families.push(FamilyPower { family: fault.family.clone(), ..FamilyPower::default() });
                let last = power.families.len() - 1;
                &mut power.families[last]
            }
        };
        family.known += 1;
        power.known += 1;
        if best == Reach::Found {
            family.found += 1;
            power.found += 1;
            continue;
        }
        let would = fault.found_by.iter().flat_map(|(instances, tests)| {
            tests.iter().map(|test| Needed { test: test.clone(), instances: *instances })
        });
        power.missed.push(Missed {
            fault: fault.name.clone(),
            family: fault.family.clone(),
            rule: fault.rule.clone(),
            why: best.word().to_owned(),
            would: would.take(MOST_NAMED).collect(),
        });
    }
    power
}

/// How near a test of the run came to a fault, nearest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    NotRun,
    NotExercised,
    TooFew,
    Found,
}

impl Reach {
    fn word(self) -> &'static str {
        match self {
            Reach::NotRun => "no test of it was run",
            Reach::NotExercised => "not exercised",
            Reach::TooFew => "too few instances",
            Reach::Found => "found",
        }
    }
}

fn reach(instances: u64, line: Option<&RunLine>) -> Reach {
    match line {
        None => Reach::NotRun,
        Some(line) => match line.verdict {
            VerdictWord::Skipped | VerdictWord::Undefined => Reach::NotRun,
            // What breaks has found something, whatever it was.
            VerdictWord::Conforms | VerdictWord::Violates if resolved(line) >= instances => Reach::Found,
            VerdictWord::Conforms | VerdictWord::Violates => Reach::TooFew,
            VerdictWord::Inconclusive => Reach::NotExercised,
        },
    }
}

fn resolved(line: &RunLine) -> u64 {
    line.instances.saturating_sub(line.unresolved)
}

impl Power {
    /// One line: what the run could have found.
    pub fn words(&self) -> String {
        format!(
            "could have found {} of {} known faults (those of the simulated GPU, at these counts)",
            self.found, self.known
        )
    }

    /// The families in a few words, those first of which most is missed.
    pub fn gaps(&self) -> String {
        let mut families: Vec<&FamilyPower> =
            self.families.iter().filter(|family| family.found < family.known).collect();
        families.sort_by_key(|family| family.found.abs_diff(family.known));
        let words: Vec<String> = families
            .iter()
            .rev()
            .map(|family| format!("{} {} of {}", family.family, family.found, family.known))
            .collect();
        words.join(", ")
    }
}

impl Missed {
    /// Which tests would have found it.
    pub fn would_words(&self) -> String {
        let words: Vec<String> = self
            .would
            .iter()
            .map(|needed| format!("{} with {}", needed.test, count(needed.instances)))
            .collect();
        if words.is_empty() { "no test is known to find it so soon".to_owned() } else { words.join(", ") }
    }
}

/// Tests that the matrix names without having asked them; none in a matrix that is right.
pub fn unknown_tests(matrix: &Matrix) -> BTreeSet<&str> {
    let asked: BTreeSet<&str> = matrix.tests.iter().map(|test| test.id.as_str()).collect();
    let named = matrix.faults.iter().flat_map(|fault| fault.found_by.values().flatten());
    named.map(String::as_str).filter(|test| !asked.contains(test)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Hashes;

    fn fault(name: &str, family: &str, found_by: &[(u64, &[&str])]) -> FaultRow {
        let ids = |tests: &[&str]| tests.iter().map(|test| (*test).to_owned()).collect();
        FaultRow {
            name: name.to_owned(),
            family: family.to_owned(),
            rule: format!("the rule of {name}"),
            expect: "violates".to_owned(),
            found_by: found_by.iter().map(|(instances, tests)| (*instances, ids(tests))).collect(),
        }
    }

    fn small() -> Matrix {
        let asked =
            |id: &str| Asked { id: id.to_owned(), hash: format!("hash of {id}"), shows: String::new() };
        let invisible = FaultRow { expect: "invisible".to_owned(), ..fault("unseen", "memory", &[]) };
        Matrix {
            tests: ["a", "b", "c", "d"].map(asked).to_vec(),
            faults: vec![
                fault("soon", "acquire", &[(1000, &["a"]), (5000, &["b"])]),
                fault("late", "acquire", &[(5000, &["a"])]),
                fault("idle", "memory", &[(1000, &["c"])]),
                fault("elsewhere", "memory", &[(1000, &["d"])]),
                fault("never", "memory", &[]),
                invisible,
            ],
            ..Matrix::default()
        }
    }

    fn line(id: &str, verdict: VerdictWord, instances: u64) -> RunLine {
        RunLine { id: id.to_owned(), device: "here".to_owned(), verdict, instances, ..RunLine::default() }
    }

    #[test]
    fn a_run_is_worth_what_its_tests_find_at_its_counts() {
        let lines = [
            line("a", VerdictWord::Conforms, 1000),
            line("c", VerdictWord::Inconclusive, 90_000),
            line("d", VerdictWord::Skipped, 0),
            line("of the user", VerdictWord::Conforms, 90_000),
        ];
        let powers = of(&small(), &lines);
        assert_eq!(powers.len(), 1, "{powers:?}");
        let power = &powers[0];
        assert_eq!((power.found, power.known), (1, 5));
        assert_eq!(power.gaps(), "memory 0 of 3, acquire 1 of 2");
        let told: Vec<(&str, &str, String)> = power
            .missed
            .iter()
            .map(|missed| (missed.fault.as_str(), missed.why.as_str(), missed.would_words()))
            .collect();
        assert_eq!(
            told,
            [
                ("late", "too few instances", "a with 5,000".to_owned()),
                ("idle", "not exercised", "c with 1,000".to_owned()),
                ("elsewhere", "no test of it was run", "d with 1,000".to_owned()),
                ("never", "no test of it was run", "no test is known to find it so soon".to_owned()),
            ]
        );
        let enough =
            of(&small(), &[line("a", VerdictWord::Violates, 5000), line("b", VerdictWord::Conforms, 1)]);
        assert_eq!(enough[0].found, 2);
    }

    #[test]
    fn another_text_is_another_test() {
        let hashes = |test: &str| Hashes { test: test.to_owned(), ..Hashes::default() };
        let own = RunLine { hashes: hashes("hash of a"), ..line("a", VerdictWord::Conforms, 5000) };
        let other = RunLine { hashes: hashes("another"), ..own.clone() };
        assert_eq!(of(&small(), &[own])[0].found, 2);
        assert_eq!(of(&small(), &[other]), []);
    }
}
