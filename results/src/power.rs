//! The detection power of a run: the known faults that it could have found.
//!
//! A campaign injects each fault of the simulated GPU in turn, runs every test of the corpus, and records the
//! instance count from which a test fails. The result is the [`PowerMatrix`], committed in `results/power/`
//! and compiled into the program. A run detects a fault by this matrix if one of its tests finds the fault
//! with at most the number of instances of the run. This is a statement about tests and counts, not a
//! probability that the device is correct: faults outside this list, or less frequent than in the simulated
//! GPU, are not covered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::format_count;
use crate::wire::{RunLine, VerdictWord};

/// Schema of the matrix.
pub const MATRIX_SCHEMA: &str = "vk-litmus/power/1";
/// The committed matrix as JSON.
pub const MATRIX_JSON: &str = include_str!("../power/faults.json");

/// Largest number of tests listed for a missed fault.
const MAX_LISTED_TESTS: usize = 4;

/// The power matrix: which tests find which faults of the simulated GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PowerMatrix {
    /// [`MATRIX_SCHEMA`].
    pub schema: String,
    /// Instance counts of the campaign. Every test runs with the first; the later ones apply to faults that
    /// few tests found.
    pub steps: Vec<u64>,
    /// A fault found by this many tests is not searched with more instances.
    pub enough: usize,
    /// Number of seeds; a test finds a fault only if it does so with each of them.
    pub seeds: u64,
    /// Every test that ran, by id, in the order of the suites.
    pub tests: Vec<CampaignTest>,
    /// Every fault.
    pub faults: Vec<FaultRow>,
}

/// A test of the campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignTest {
    /// Test id.
    pub id: String,
    /// BLAKE3 hash of the test's text.
    pub hash: String,
    /// Hash of the test's outcomes on the simulated GPU without a fault and with one seed; it changes when
    /// the simulated GPU does, and then the matrix is out of date.
    pub shows: String,
}

/// A fault of the simulated GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRow {
    /// Name of the fault.
    pub name: String,
    /// The part of the memory model that it affects.
    pub family: String,
    /// The rule that it breaks.
    pub rule: String,
    /// Expected verdict: `violates` or `inconclusive`; `invisible` if no race-free test can observe it, which
    /// is not counted.
    pub expect: String,
    /// Tests that find the fault, by the smallest instance count with which they do.
    pub found_by: BTreeMap<u64, Vec<String>>,
}

impl FaultRow {
    /// Returns true if a race-free test can observe the fault.
    pub fn is_visible(&self) -> bool {
        self.expect != "invisible"
    }

    /// Returns the instance count with which `test` finds the fault, if it does.
    pub fn instances_of(&self, test: &str) -> Option<u64> {
        let found = self.found_by.iter().find(|(_, tests)| tests.iter().any(|id| id == test));
        found.map(|(instances, _)| *instances)
    }
}

/// Returns the compiled-in matrix; `None` only if its JSON is invalid, which a test excludes.
pub fn embedded_matrix() -> Option<&'static PowerMatrix> {
    static SHIPPED: LazyLock<Option<PowerMatrix>> = LazyLock::new(|| serde_json::from_str(MATRIX_JSON).ok());
    SHIPPED.as_ref()
}

/// The detection power of a run on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// Name of the device.
    pub device: String,
    /// Number of faults that tests of this run find on the simulated GPU with at most as many instances as
    /// here.
    pub found: usize,
    /// Number of faults that some test finds.
    pub known: usize,
    /// The counts by family.
    pub families: Vec<FamilyPower>,
    /// The faults that this run could not have found.
    pub missed: Vec<Missed>,
}

/// The detection power over the faults of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyPower {
    /// Name of the family.
    pub family: String,
    /// Number of faults of the family that this run could have found.
    pub found: usize,
    /// Number of faults of the family that some test finds.
    pub known: usize,
}

/// A fault that the run could not have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// Name of the fault.
    pub fault: String,
    /// Family of the fault.
    pub family: String,
    /// The rule that it breaks.
    pub rule: String,
    /// The reason: `no test of it was run`, `not exercised`, or `too few instances`. If several apply, the
    /// last.
    pub why: String,
    /// Tests that find it, with their instance counts; those with the fewest instances.
    pub found_by: Vec<Needed>,
}

/// A test that finds a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Test id.
    pub test: String,
    /// Number of instances that it needs.
    pub instances: u64,
}

/// Computes the power for each device, in order of first appearance. A device without a test of the matrix is
/// omitted.
pub fn compute_powers<'a>(matrix: &PowerMatrix, lines: impl IntoIterator<Item = &'a RunLine>) -> Vec<Power> {
    let hashes: BTreeMap<&str, &str> =
        matrix.tests.iter().map(|test| (test.id.as_str(), test.hash.as_str())).collect();
    let mut devices: Vec<(&str, BTreeMap<&str, &RunLine>)> = Vec::new();
    for line in lines {
        // A test with another text is another test. Older records have no hash.
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
    devices.into_iter().map(|(device, ran)| compute_power(matrix, device, &ran)).collect()
}

fn compute_power(matrix: &PowerMatrix, device: &str, ran: &BTreeMap<&str, &RunLine>) -> Power {
    let mut power = Power { device: device.to_owned(), ..Power::default() };
    for fault in matrix.faults.iter().filter(|fault| fault.is_visible()) {
        let reach = fault.found_by.iter().flat_map(|(instances, tests)| {
            tests.iter().map(|test| detection_reach(*instances, ran.get(test.as_str()).copied()))
        });
        let best = reach.max().unwrap_or(DetectionReach::NotRun);
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
        if best == DetectionReach::Found {
            family.found += 1;
            power.found += 1;
            continue;
        }
        let finding = fault.found_by.iter().flat_map(|(instances, tests)| {
            tests.iter().map(|test| Needed { test: test.clone(), instances: *instances })
        });
        power.missed.push(Missed {
            fault: fault.name.clone(),
            family: fault.family.clone(),
            rule: fault.rule.clone(),
            why: best.word().to_owned(),
            found_by: finding.take(MAX_LISTED_TESTS).collect(),
        });
    }
    power
}

/// How close a test of the run came to finding a fault, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DetectionReach {
    NotRun,
    NotExercised,
    TooFewInstances,
    Found,
}

impl DetectionReach {
    fn word(self) -> &'static str {
        match self {
            DetectionReach::NotRun => "no test of it was run",
            DetectionReach::NotExercised => "not exercised",
            DetectionReach::TooFewInstances => "too few instances",
            DetectionReach::Found => "found",
        }
    }
}

fn detection_reach(instances: u64, line: Option<&RunLine>) -> DetectionReach {
    match line {
        None => DetectionReach::NotRun,
        Some(line) => match line.verdict {
            VerdictWord::Skipped | VerdictWord::Undefined => DetectionReach::NotRun,
            // The run found a fault, whichever it is.
            VerdictWord::Violates => DetectionReach::Found,
            VerdictWord::Conforms if resolved_instances(line) >= instances => DetectionReach::Found,
            VerdictWord::Conforms => DetectionReach::TooFewInstances,
            VerdictWord::Inconclusive => DetectionReach::NotExercised,
        },
    }
}

fn resolved_instances(line: &RunLine) -> u64 {
    line.instances.saturating_sub(line.unresolved)
}

impl Power {
    /// Summarizes the power in one line.
    pub fn summarize(&self) -> String {
        format!(
            "could have found {} of {} known faults (those of the simulated GPU, at these counts)",
            self.found, self.known
        )
    }

    /// Lists the families with missed faults, largest gap first.
    pub fn describe_gaps(&self) -> String {
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
    /// Lists the tests that find the fault.
    pub fn describe_found_by(&self) -> String {
        let words: Vec<String> = self
            .found_by
            .iter()
            .map(|needed| format!("{} with {}", needed.test, format_count(needed.instances)))
            .collect();
        if words.is_empty() { "no test is known to find it this soon".to_owned() } else { words.join(", ") }
    }
}

/// Returns the tests that fault rows name and that did not run; empty for a valid matrix.
pub fn unknown_tests(matrix: &PowerMatrix) -> BTreeSet<&str> {
    let matrix_tests: BTreeSet<&str> = matrix.tests.iter().map(|test| test.id.as_str()).collect();
    let named = matrix.faults.iter().flat_map(|fault| fault.found_by.values().flatten());
    named.map(String::as_str).filter(|test| !matrix_tests.contains(test)).collect()
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

    fn small_matrix() -> PowerMatrix {
        let campaign_test = |id: &str| CampaignTest {
            id: id.to_owned(),
            hash: format!("hash of {id}"),
            shows: String::new(),
        };
        let invisible = FaultRow { expect: "invisible".to_owned(), ..fault("unseen", "memory", &[]) };
        PowerMatrix {
            tests: ["a", "b", "c", "d"].map(campaign_test).to_vec(),
            faults: vec![
                fault("soon", "acquire", &[(1000, &["a"]), (5000, &["b"])]),
                fault("late", "acquire", &[(5000, &["a"])]),
                fault("idle", "memory", &[(1000, &["c"])]),
                fault("elsewhere", "memory", &[(1000, &["d"])]),
                fault("never", "memory", &[]),
                invisible,
            ],
            ..PowerMatrix::default()
        }
    }

    fn line(id: &str, verdict: VerdictWord, instances: u64) -> RunLine {
        RunLine { id: id.to_owned(), device: "here".to_owned(), verdict, instances, ..RunLine::default() }
    }

    #[test]
    fn the_power_of_a_run_depends_on_its_tests_and_counts() {
        let lines = [
            line("a", VerdictWord::Conforms, 1000),
            line("c", VerdictWord::Inconclusive, 90_000),
            line("d", VerdictWord::Skipped, 0),
            line("of the user", VerdictWord::Conforms, 90_000),
        ];
        let powers = compute_powers(&small_matrix(), &lines);
        assert_eq!(powers.len(), 1, "{powers:?}");
        let power = &powers[0];
        assert_eq!((power.found, power.known), (1, 5));
        assert_eq!(power.describe_gaps(), "memory 0 of 3, acquire 1 of 2");
        let missed_faults: Vec<(&str, &str, String)> = power
            .missed
            .iter()
            .map(|missed| (missed.fault.as_str(), missed.why.as_str(), missed.describe_found_by()))
            .collect();
        assert_eq!(
            missed_faults,
            [
                ("late", "too few instances", "a with 5,000".to_owned()),
                ("idle", "not exercised", "c with 1,000".to_owned()),
                ("elsewhere", "no test of it was run", "d with 1,000".to_owned()),
                ("never", "no test of it was run", "no test is known to find it this soon".to_owned()),
            ]
        );
        let enough = compute_powers(
            &small_matrix(),
            // A violation shows that the instances were enough.
            &[line("a", VerdictWord::Violates, 1), line("b", VerdictWord::Conforms, 1)],
        );
        assert_eq!(enough[0].found, 2);
    }

    #[test]
    fn a_test_with_another_text_does_not_count() {
        let hashes = |test: &str| Hashes { test: test.to_owned(), ..Hashes::default() };
        let own = RunLine { hashes: hashes("hash of a"), ..line("a", VerdictWord::Conforms, 5000) };
        let other = RunLine { hashes: hashes("another"), ..own.clone() };
        assert_eq!(compute_powers(&small_matrix(), &[own])[0].found, 2);
        assert_eq!(compute_powers(&small_matrix(), &[other]), []);
    }
}
