//! The matrix of faults and tests: how many instances of each test find each fault. Reports read the
//! detection power of a run from it.

use std::collections::{BTreeMap, BTreeSet};

use results::power::{CampaignTest, FaultRow, MATRIX_SCHEMA, PowerMatrix};
use sim::{FAULTS, Fault, Row, SimDevice};

use super::{SuiteCase, case, found, judged, ran};
use crate::parallel::in_order;
use crate::targets::Tell;
use crate::{Failure, choice, inputs};

/// The suites with all tests of the matrix: the whole corpus and its variants.
const SUITES: [&str; 3] = ["full", "quick", "faults"];
/// Instances for every test; the second value is used if fewer than [`ENOUGH`] tests found the fault.
const STEPS: [u64; 2] = [1_000, 10_000];
/// Tests that have to find a fault before the search stops.
const ENOUGH: usize = 3;
/// Seeds that all have to find a fault.
const SEEDS: u64 = 2;
/// Instances on the sound device, whose histogram identifies the machine.
const SHOWN: u64 = 300;

/// Runs every test against every fault for which `old` has no answer. Returns the matrix and the number of
/// new tests, and reports each finished fault to `done`.
///
/// # Errors
/// If a suite cannot be read.
pub fn matrix(old: &PowerMatrix, done: Tell<'_>) -> Result<(PowerMatrix, usize), Failure> {
    let cases = load_cases()?;
    let asked: Vec<CampaignTest> = cases.iter().map(matrix_record).collect::<Result<_, _>>()?;
    let same =
        old.schema == MATRIX_SCHEMA && old.steps == STEPS && (old.enough, old.seeds) == (ENOUGH, SEEDS);
    let known = |asked: &CampaignTest| same && old.tests.contains(asked);
    let new: BTreeSet<String> =
        asked.iter().filter(|asked| !known(asked)).map(|asked| asked.id.clone()).collect();
    let rows: Vec<&Row> = FAULTS.iter().collect();
    let mut faults = Vec::with_capacity(rows.len());
    in_order(
        &rows,
        |row| fault_row(row, &cases, old, &new),
        |fault| {
            let fault = fault?;
            done(&format!("{}: {} of {}", fault.name, faults.len() + 1, rows.len()));
            faults.push(fault);
            Ok::<(), Failure>(())
        },
    )?;
    let matrix = PowerMatrix {
        schema: MATRIX_SCHEMA.to_owned(),
        steps: STEPS.to_vec(),
        enough: ENOUGH,
        seeds: SEEDS,
        tests: asked,
        faults,
    };
    Ok((matrix, new.len()))
}

/// Loads the tests with a forbidden outcome, in the order of the suites.
fn load_cases() -> Result<Vec<SuiteCase>, Failure> {
    let chosen = choice::load(super::MODEL)?;
    let mut ids = BTreeSet::new();
    let mut cases = Vec::new();
    for suite in SUITES {
        for source in inputs::of_suite(suite)? {
            if ids.insert(source.id.clone())
                && let Some(case) = case(source, &chosen)?
                && case.can_fail()
            {
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

/// Returns the record that identifies a test in the matrix.
fn matrix_record(case: &SuiteCase) -> Result<CampaignTest, Failure> {
    let device = SimDevice::new(Fault::None);
    let (seen, _) = ran(case, &device, SHOWN, 1)?;
    let shows = choice::hash(&format!("{:?} {:?}", seen.histogram, seen.unexpected));
    let shows = shows.get(..16).unwrap_or_default().to_owned();
    Ok(CampaignTest { id: case.id.clone(), hash: case.hash.clone(), shows })
}

/// Returns a fault with the tests that find it: known ones from `old`, and the result of running the new
/// ones.
fn fault_row(
    row: &Row,
    cases: &[SuiteCase],
    old: &PowerMatrix,
    new: &BTreeSet<String>,
) -> Result<FaultRow, Failure> {
    let expect = row.expect.word();
    let mut fault = FaultRow {
        name: row.name.to_owned(),
        family: row.family.to_owned(),
        rule: row.rule.to_owned(),
        expect: expect.to_owned(),
        found_by: BTreeMap::new(),
    };
    if !fault.is_visible() {
        return Ok(fault);
    }
    let known = old.faults.iter().find(|known| known.name == fault.name && known.rule == fault.rule);
    let device = SimDevice::new(row.fault);
    let mut left: Vec<&SuiteCase> = Vec::new();
    for case in cases {
        match known.filter(|_| !new.contains(&case.id)) {
            Some(known) => {
                if let Some(instances) = known.instances_of(&case.id) {
                    fault.found_by.entry(instances).or_default().push(case.id.clone());
                }
            }
            None => left.push(case),
        }
    }
    for instances in STEPS {
        let mut still = Vec::new();
        for case in left {
            if finds_fault(case, &device, instances, expect)? {
                fault.found_by.entry(instances).or_default().push(case.id.clone());
            } else {
                still.push(case);
            }
        }
        if fault.found_by.values().map(Vec::len).sum::<usize>() >= ENOUGH {
            break;
        }
        left = still;
    }
    Ok(fault)
}

/// Returns true if every seed finds the expected verdict.
fn finds_fault(case: &SuiteCase, device: &SimDevice, instances: u64, expect: &str) -> Result<bool, Failure> {
    for seed in 0..SEEDS {
        if found(&judged(case, device, instances, seed)?) != Some(expect) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix of another corpus or another machine would give wrong detection power.
    #[test]
    fn the_committed_matrix_is_complete_and_of_this_corpus_and_this_machine() {
        let matrix = results::power::embedded_matrix().unwrap();
        let again = "run `vk-litmus bench --faults --matrix results/power/faults.json`";
        let told = |row: &Row| (row.name, row.family, row.rule, row.expect.word());
        let listed = |row: &'static FaultRow| {
            (row.name.as_str(), row.family.as_str(), row.rule.as_str(), row.expect.as_str())
        };
        assert_eq!(
            matrix.faults.iter().map(listed).collect::<Vec<_>>(),
            FAULTS.iter().map(told).collect::<Vec<_>>(),
            "{again}"
        );
        assert_eq!((matrix.schema.as_str(), matrix.steps.as_slice()), (MATRIX_SCHEMA, STEPS.as_slice()));
        assert_eq!((matrix.enough, matrix.seeds), (ENOUGH, SEEDS), "{again}");
        assert_eq!(results::power::unknown_tests(matrix), BTreeSet::new(), "{again}");
        let today: Vec<CampaignTest> =
            load_cases().unwrap().iter().map(|case| matrix_record(case).unwrap()).collect();
        let old: Vec<&CampaignTest> = today.iter().filter(|asked| !matrix.tests.contains(asked)).collect();
        assert!(old.is_empty() && today.len() == matrix.tests.len(), "{again}: it does not have {old:?}");
        let blind: Vec<&str> = matrix
            .faults
            .iter()
            .filter(|fault| fault.is_visible() && fault.found_by.is_empty())
            .map(|fault| fault.name.as_str())
            .collect();
        assert!(blind.len() * 10 <= matrix.faults.len(), "no test finds {blind:?}");
    }
}
