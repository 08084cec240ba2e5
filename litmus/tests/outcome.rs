//! Outcomes against conditions, and sums of observations.

use std::collections::BTreeMap;

use litmus::outcome::Batches;
use litmus::{Observation, Outcome, Value};

#[test]
fn batches_are_summed_if_all_runs_have_them() {
    let one = |total| Observation {
        dispatches: 1,
        batches: Some(Batches { total, by_outcome: BTreeMap::from([(Outcome(vec![Value(1)]), 2)]) }),
        ..Observation::default()
    };
    let mut seen = Observation::default();
    seen.merge_from(&one(5));
    seen.merge_from(&one(7));
    let both = BTreeMap::from([(Outcome(vec![Value(1)]), 4)]);
    assert_eq!(seen.batches, Some(Batches { total: 12, by_outcome: both }));
    seen.merge_from(&Observation { dispatches: 1, ..Observation::default() });
    assert_eq!(seen.batches, None);
}

#[test]
fn constants_have_the_width_of_the_other_operand() {
    let text = "VULKAN t\n{ u8 b = 0; P0:r1 = 3; } P0@host ; ld.sc0 r0, x ; ld.sc0 r2, b; add r3, r1, 1;";
    let test = litmus::parse(text, "t").unwrap();
    let observables = test.observables();
    let values = |x: u64, b: u64| Outcome(vec![Value(x), Value(b), Value(4)]);
    let meets = |outcome: &Outcome, condition: &str| {
        let condition = litmus::parse_condition(condition, "condition", &test).unwrap();
        outcome.meets_condition(&test, &observables, &condition)
    };
    let outcome = values(0xFFFF_FFFF, 0xFF);
    for condition in [
        "P0:r0 == 4294967295",
        "P0:r0 == -1",
        "0xffffffff == P0:r0",
        "P0:r2 == 255",
        "P0:r2 > 0",
        "P0:r0 < 0",
        "P0:r0 != 255",
        "P0:r0 != P0:r2",
        "P0:r1 == 3 /\\ P0:r3 == 4",
        "4294967295 != -1",
    ] {
        assert!(meets(&outcome, condition), "{condition}");
    }
    for condition in ["P0:r0 == 4294967294", "P0:r2 == 127", "P0:r2 == -1", "P0:r1 == 0"] {
        assert!(!meets(&outcome, condition), "{condition}");
    }
    // A condition that can never hold is a mistake.
    for condition in ["P0:r0 == 4294967296", "~(4294967296 == P0:r2)"] {
        assert!(litmus::parse_condition(condition, "condition", &test).is_err(), "{condition}");
    }
}
