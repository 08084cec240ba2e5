//! Faults: each one that can be seen is found by the suite that is made for it, and a sound device is never accused.

use std::time::{Duration, Instant};

use litmus::suite::Suite;
use litmus::{Prediction, Race, Test};
use runner::Join;
use sim::{Expect, FAULTS, Fault, SimDevice};

use crate::common::{exceptions, prediction, run_joined};

/// The tests of the suite, with their predictions.
fn suite() -> Vec<(Test, Prediction)> {
    let suites = litmus::corpus::suites();
    let entry = suites.iter().find(|suite| suite.id == "faults").unwrap();
    let suite = Suite::parse(entry.text, &entry.path).unwrap();
    let tests = litmus::corpus::tests();
    let ids = suite.select(tests.iter().map(|test| test.id.as_str())).unwrap();
    tests
        .iter()
        .filter(|entry| ids.contains(&entry.id.as_str()))
        .filter_map(|entry| {
            let test = litmus::parse(entry.text, &entry.path).unwrap();
            let prediction = prediction(&test)?;
            (prediction.race == Race::Free).then_some((test, prediction))
        })
        .collect()
}

/// What came of a fault.
fn find(fault: Fault, suite: &[(Test, Prediction)], limit: Duration) -> (&'static str, String) {
    let device = SimDevice::new(fault);
    let since = Instant::now();
    for (round, instances) in [1_000, 5_000, 50_000, 200_000].into_iter().enumerate() {
        for (test, prediction) in suite {
            let joins: &[Join] = if test.system_sync.is_empty() {
                &[Join::Barrier]
            } else {
                &[Join::Barrier, Join::Semaphore]
            };
            let runs =
                joins.iter().filter_map(|join| run_joined(&device, test, instances, round as u64, *join));
            for ran in runs {
                match ran {
                    Err(error) => return ("inconclusive", format!("{}: {error}", test.name)),
                    Ok(seen) if seen.discarded_dispatches * 100 > seen.dispatches => {
                        return ("inconclusive", format!("{}: not executed", test.name));
                    }
                    Ok(seen) => {
                        if let Some(wrong) = exceptions(test, prediction, &seen).first() {
                            return ("violates", format!("{wrong}, {instances} instances a test"));
                        }
                    }
                }
            }
            if since.elapsed() > limit {
                return ("invisible", "time is up".into());
            }
        }
    }
    ("invisible", "nothing".into())
}

#[test]
fn the_suite_finds_what_can_be_seen() {
    let suite = suite();
    assert!(suite.len() > 10);
    let mut wrong = Vec::new();
    for row in FAULTS {
        let invisible = matches!(row.expect, Expect::Invisible(_));
        // What is said to be invisible is not searched for ever.
        let limit = if invisible { Duration::from_millis(300) } else { Duration::from_secs(60) };
        let since = Instant::now();
        let (found, by) = find(row.fault, &suite, limit);
        println!("{:32} {found:12} {:>6} ms  {by}", row.name, since.elapsed().as_millis());
        if found != row.expect.word() {
            wrong.push(format!("{}: {found}, not {}: {by}", row.name, row.expect.word()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
