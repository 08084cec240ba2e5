//! The expectations of each corpus test agree with the models.

use crate::oracle::UNLIMITED;
use std::collections::BTreeMap;

use litmus::{Dialect, QuestionKind, Reachability, Test};
use model::{Model, predict_with_growing_bound};

#[test]
fn expectations_hold() {
    let models: BTreeMap<&str, Model> = Model::shipped_models()
        .iter()
        .map(|(name, _)| (*name, Model::shipped(name).expect("a shipped model").unwrap()))
        .collect();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests()) {
        let test = litmus::parse(entry.text, &entry.id).unwrap_or_else(|e| panic!("{}: {e:?}", entry.id));
        for expectation in &test.metadata.expectations {
            // Other models judge the lowered program of an HSA test.
            let lowered = test.dialect == Dialect::Hsa && expectation.model != litmus::hsa::MODEL;
            let test = match litmus::lower_to_vulkan(&test) {
                Ok(program) if lowered => program.test,
                Err(refused) if lowered => {
                    wrong.push(format!("{}: no Vulkan program: {refused}", entry.id));
                    continue;
                }
                _ => test.clone(),
            };
            let Some(model) = models.get(expectation.model.as_str()) else {
                wrong.push(format!("{}: no model {}", entry.id, expectation.model));
                continue;
            };
            let prediction = predict_with_growing_bound(&test, model, &UNLIMITED)
                .unwrap_or_else(|e| panic!("{}: {e}", entry.id));
            let seen = match test.question.as_ref().map(|q| q.kind) {
                Some(QuestionKind::Forall) => prediction.can_miss_condition,
                _ => prediction.can_meet_condition,
            };
            let expected = expectation.reachability == Reachability::Allowed;
            if seen != Some(expected) {
                wrong.push(format!(
                    "{} under {}: allowed {seen:?}, expected {expected}",
                    entry.id, expectation.model
                ));
            }
            // Devices do not apply the filter, so an early read of the awaited value may race.
            let race = match &test.filter {
                Some(_) if lowered => {
                    let program = Test { filter: None, ..test.clone() };
                    predict_with_growing_bound(&program, model, &UNLIMITED)
                        .unwrap_or_else(|e| panic!("{}: {e}", entry.id))
                        .race
                }
                _ => prediction.race,
            };
            if let Some(expected) = expectation.race
                && expected != race
            {
                wrong.push(format!(
                    "{} under {}: {race:?}, expected {expected:?}",
                    entry.id, expectation.model
                ));
            }
            if expectation.race.is_some() && prediction.uninitialised_read != Some(expectation.uninitialised)
            {
                wrong.push(format!(
                    "{} under {}: of uninitialised reads {:?}",
                    entry.id, expectation.model, prediction.uninitialised_read
                ));
            }
            checked += 1;
        }
    }
    println!("{checked} expectations checked");
    assert!(checked > 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
