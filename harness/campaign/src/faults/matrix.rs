//! The matrix of faults and tests: how many instances of each test find each fault. Reports read the
//! detection power of a run from it.

use std::collections::{BTreeMap, BTreeSet};

use results::power::{CampaignTest, FaultRow, MATRIX_SCHEMA, PowerMatrix};
use sim::{FAULTS, Fault, Row, SimDevice};

use super::{SuiteCase, fault_verdict, judge_case, load_case, run_case};
use crate::parallel::process_in_order;
use crate::targets::MessageSink;
use crate::{Failure, inputs, models};

/// The suites with all tests of the matrix: the whole corpus and its variants.
const SUITES: [&str; 3] = ["full", "quick", "faults"];
/// Instances for every test; the second value is used if fewer than [`ENOUGH_TESTS`] tests found the fault.
const INSTANCE_STEPS: [u64; 2] = [1_000, 10_000];
/// Tests that have to find a fault before the search stops.
const ENOUGH_TESTS: usize = 3;
/// Seeds that all have to find a fault.
const SEEDS: u64 = 2;
/// Instances on the sound device, whose histogram identifies the machine.
const FINGERPRINT_INSTANCES: u64 = 300;

/// Runs every test against every fault for which `old` has no answer. Returns the matrix and the number of
/// new tests, and reports each finished fault to `on_progress`.
///
/// # Errors
/// If a suite cannot be read.
pub fn update_matrix(
    old: &PowerMatrix,
    on_progress: MessageSink<'_>,
) -> Result<(PowerMatrix, usize), Failure> {
    let cases = load_cases()?;
    let current_tests: Vec<CampaignTest> = cases.iter().map(matrix_record).collect::<Result<_, _>>()?;
    let is_same_setup = old.schema == MATRIX_SCHEMA
        && old.steps == INSTANCE_STEPS
        && (old.enough, old.seeds) == (ENOUGH_TESTS, SEEDS);
    let is_known = |test: &CampaignTest| is_same_setup && old.tests.contains(test);
    let new_ids: BTreeSet<String> =
        current_tests.iter().filter(|asked| !is_known(asked)).map(|asked| asked.id.clone()).collect();
    let rows: Vec<&Row> = FAULTS.iter().collect();
    let mut faults = Vec::with_capacity(rows.len());
    process_in_order(
        &rows,
        |row| fault_row(row, &cases, old, &new_ids),
        |fault| {
            let fault = fault?;
            on_progress(&format!("{}: {} of {}", fault.name, faults.len() + 1, rows.len()));
            faults.push(fault);
            Ok::<(), Failure>(())
        },
    )?;
    let matrix = PowerMatrix {
        schema: MATRIX_SCHEMA.to_owned(),
        steps: INSTANCE_STEPS.to_vec(),
        enough: ENOUGH_TESTS,
        seeds: SEEDS,
        tests: current_tests,
        faults,
    };
    Ok((matrix, new_ids.len()))
}

/// Loads the tests with a forbidden outcome, in the order of the suites.
fn load_cases() -> Result<Vec<SuiteCase>, Failure> {
    let chosen = models::load(super::MODEL)?;
    let mut ids = BTreeSet::new();
    let mut cases = Vec::new();
    for suite in SUITES {
        for source in inputs::suite_tests(suite)? {
            if ids.insert(source.id.clone())
                && let Some(case) = load_case(source, &chosen)?
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
    let (observation, _) = run_case(case, &device, FINGERPRINT_INSTANCES, 1)?;
    let fingerprint = models::text_hash(&format!("{:?} {:?}", observation.histogram, observation.unexpected));
    let fingerprint = fingerprint.get(..16).unwrap_or_default().to_owned();
    Ok(CampaignTest { id: case.id.clone(), hash: case.hash.clone(), shows: fingerprint })
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
    let old_row = old.faults.iter().find(|known| known.name == fault.name && known.rule == fault.rule);
    let device = SimDevice::new(row.fault);
    let mut remaining: Vec<&SuiteCase> = Vec::new();
    for case in cases {
        match old_row.filter(|_| !new.contains(&case.id)) {
            Some(known) => {
                if let Some(instances) = known.instances_of(&case.id) {
                    fault.found_by.entry(instances).or_default().push(case.id.clone());
                }
            }
            None => remaining.push(case),
        }
    }
    for instances in INSTANCE_STEPS {
        let mut unfound = Vec::new();
        for case in remaining {
            if finds_fault(case, &device, instances, expect)? {
                fault.found_by.entry(instances).or_default().push(case.id.clone());
            } else {
                unfound.push(case);
            }
        }
        if fault.found_by.values().map(Vec::len).sum::<usize>() >= ENOUGH_TESTS {
            break;
        }
        remaining = unfound;
    }
    Ok(fault)
}

/// Returns true if every seed finds the expected verdict.
fn finds_fault(case: &SuiteCase, device: &SimDevice, instances: u64, expect: &str) -> Result<bool, Failure> {
    for seed in 0..SEEDS {
        if fault_verdict(&judge_case(case, device, instances, seed)?) != Some(expect) {
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
        let hint = "run `vk-litmus bench --faults --matrix results/power/faults.json`";
        let row_key = |row: &Row| (row.name, row.family, row.rule, row.expect.word());
        let matrix_key = |row: &'static FaultRow| {
            (row.name.as_str(), row.family.as_str(), row.rule.as_str(), row.expect.as_str())
        };
        assert_eq!(
            matrix.faults.iter().map(matrix_key).collect::<Vec<_>>(),
            FAULTS.iter().map(row_key).collect::<Vec<_>>(),
            "{hint}"
        );
        assert_eq!(
            (matrix.schema.as_str(), matrix.steps.as_slice()),
            (MATRIX_SCHEMA, INSTANCE_STEPS.as_slice())
        );
        assert_eq!((matrix.enough, matrix.seeds), (ENOUGH_TESTS, SEEDS), "{hint}");
        assert_eq!(results::power::unknown_tests(matrix), BTreeSet::new(), "{hint}");
        let today: Vec<CampaignTest> =
            load_cases().unwrap().iter().map(|case| matrix_record(case).unwrap()).collect();
        let old: Vec<&CampaignTest> = today.iter().filter(|test| !matrix.tests.contains(test)).collect();
        assert!(old.is_empty() && today.len() == matrix.tests.len(), "{hint}: it does not have {old:?}");
        let blind: Vec<&str> = matrix
            .faults
            .iter()
            .filter(|fault| fault.is_visible() && fault.found_by.is_empty())
            .map(|fault| fault.name.as_str())
            .collect();
        assert!(blind.len() * 10 <= matrix.faults.len(), "no test finds {blind:?}");
    }
}
