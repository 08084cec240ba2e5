//! The programs of the CTS are race-free and their conditions forbidden. Without availability and visibility
//! chains, the transitive ones race.

use std::collections::BTreeMap;

use litmus::Race;
use litmus::cts::{self, CtsCase, Type};
use model::{Model, PredictOptions, predict};

#[test]
fn every_program_is_race_free_and_its_condition_forbidden() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let chainless = Model::shipped("vulkan-nochains").unwrap().unwrap();
    // Types do not affect the model.
    let plain = |case: &CtsCase| !matches!(case, CtsCase::Generated(case) if case.scalar != Type::U32);
    let texts: BTreeMap<String, (CtsCase, String)> =
        cts::all_cases().filter(plain).map(|case| (case.test_id(), (case, case.litmus_text()))).collect();
    for (id, (case, text)) in &texts {
        let test = litmus::parse(text, id).unwrap();
        let prediction = predict(&test, &model, &PredictOptions::default()).unwrap();
        assert_eq!(prediction.race, Race::Free, "{id}\n{text}");
        assert_eq!(prediction.can_meet_condition, Some(false), "{id}\n{text}");
        assert_eq!(prediction.can_miss_condition, Some(true), "{id}: its question is never missed\n{text}");
        if let CtsCase::Transitive(_) = case {
            let prediction = predict(&test, &chainless, &PredictOptions::default()).unwrap();
            assert_eq!(prediction.race, Race::Racy, "{id}\n{text}");
        }
    }
}
