//! Compares two implementations of each progress model: the scheduler hangs exactly if the checker predicts a
//! possible hang. The checker interprets the test by interleaving, the scheduler executes SPIR-V with weak
//! memory.

use std::time::Duration;

use model::Model;
use model::progress::{Fairness, ProgressLimits, ProgressModel, check_termination_under};
use runner::progress::{ProgressSettings, UnitAssignment, run};
use sim::SimDevice;

/// Models for all levels, and some that differ by level.
const MODELS: [&str; 12] = [
    "fair",
    "lobe",
    "hsa-obe",
    "hsa",
    "obe",
    "unfair",
    "qf=obe,sg=hsa",
    "qf=hsa,sg=unfair",
    "wg=hsa",
    "wg=obe",
    "sg=hsa",
    "sg=unfair",
];
/// Maximum number of submissions in which an expected hang must occur; the first hang ends the search.
const MAX_SUBMISSIONS: u32 = 2_000;
/// Number of submissions if no hang is expected.
const SUBMISSIONS_WITHOUT_HANG: u32 = 25;
/// Kernels have no divergent control barriers, and only buffer memory.
const REFUSED_BY_RULE: [&str; 3] = [
    "control barrier under a branch",
    "control barrier not reached by every thread",
    "split barrier in a progress test",
];

fn settings(runs: u32) -> ProgressSettings {
    ProgressSettings {
        placement: UnitAssignment::Plain,
        runs,
        max_hangs: 1,
        dispatch_timeout: Duration::from_millis(1),
        seed: 1,
    }
}

#[test]
fn hangs_are_those_of_the_checker() {
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let models: Vec<ProgressModel> = MODELS.iter().map(|name| name.parse().unwrap()).collect();
    let (mut wrong, mut compared, mut skipped) = (Vec::new(), 0, 0);
    for entry in litmus::corpus::progress_tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let answers =
            check_termination_under(&test, &vulkan, &models, Fairness::Weak, &ProgressLimits::default())
                .unwrap();
        for (name, answer) in MODELS.iter().zip(answers) {
            let ends = answer.terminates.unwrap();
            let device = SimDevice::with_progress_model(name.parse().unwrap());
            let (seen, failure) = run(
                &device,
                &test,
                &settings(if ends { SUBMISSIONS_WITHOUT_HANG } else { MAX_SUBMISSIONS }),
                &mut |_| {},
            );
            if let Some(failure) = failure {
                assert!(
                    REFUSED_BY_RULE.contains(&failure.to_string().as_str()),
                    "{} under {name}: {failure}",
                    entry.id
                );
                skipped += 1;
                continue;
            }
            compared += 1;
            if ends == seen.hangs.is_empty() {
                continue;
            }
            let checker = if ends { "ends" } else { "may hang" };
            wrong.push(format!(
                "{} under {name}: {checker}, stuck {} of {}",
                entry.id,
                seen.hangs.len(),
                seen.runs
            ));
        }
    }
    println!("{compared} compared; {skipped} skipped: no kernel");
    assert!(compared >= 400, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}
