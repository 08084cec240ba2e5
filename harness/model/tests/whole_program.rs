//! The encoding of all paths of a program against the search by combinations of paths.
#![expect(clippy::unwrap_used, reason = "tests")]

use litmus::{Race, Test};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use model::internals::{ExplorationStrategy, decide_by_encoding, predict_with_strategy};
use model::{Budget, Model, PredictOptions, predict_without_outcomes};

use crate::common as random;

/// Compares both answers; returns false if the encoding does not support the test.
fn agrees(test: &Test, name: &str, model: &Model, unroll: u32) -> bool {
    let options = PredictOptions { budget: Budget::from_steps(2_000_000), unroll };
    let strategy = ExplorationStrategy { whole_program: false, ..ExplorationStrategy::DECIDE_ONLY };
    // Every execution that the solver finds is also evaluated by the plan: see `is_solution_consistent`.
    let Ok(Some(encoded)) = decide_by_encoding(test, model, unroll, options.budget) else { return false };
    let Ok(searched) = predict_with_strategy(test, model, &options, strategy) else { return false };
    let found = (encoded.race == Race::Racy, encoded.can_meet_condition, encoded.can_miss_condition);
    let is_cut = encoded.is_cut;
    let expected = (
        searched.race == Race::Racy,
        searched.can_meet_condition == Some(true),
        searched.can_miss_condition == Some(true),
    );
    if searched.race == Race::Unknown && searched.truncated_runs == 0 {
        return false;
    }
    let has_question = test.question.is_some();
    let implies = |one: bool, other: bool| !one || other;
    let is_equal = found.0 == expected.0
        && (!has_question || (found.1, found.2) == (expected.1, expected.2))
        && (is_cut || searched.truncated_runs == 0);
    // The search covers more runs than its bound, but none of them has another answer.
    let is_bounded = is_cut
        && implies(found.0, expected.0)
        && (!has_question || implies(found.1, expected.1) && implies(found.2, expected.2));
    assert!(
        is_equal || is_bounded && searched.truncated_runs == 0,
        "{name} under {} with bound {unroll}: {found:?}, cut off: {is_cut}; searched: {expected:?}, {} cut off",
        model.name(),
        searched.truncated_runs
    );
    true
}

fn shipped(name: &str) -> Model {
    Model::shipped(name).unwrap().unwrap()
}

#[test]
fn the_encoding_agrees_with_the_search_on_the_corpus() {
    for (name, unroll, least) in
        [("vulkan", 1, 400), ("vulkan", 2, 400), ("dartagnan", 1, 100), ("sc", 1, 100)]
    {
        let Some(Ok(model)) = Model::shipped(name) else { continue };
        let mut supported = 0;
        for entry in litmus::corpus::tests() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            supported += usize::from(agrees(&test, &entry.id, &model, unroll));
        }
        println!("{name}, bound {unroll}: {supported} tests");
        assert!(supported >= least, "{supported} tests under {name}");
    }
}

#[test]
fn the_encoding_agrees_with_the_search_on_random_tests() {
    for name in ["vulkan", "khronos-alloy"] {
        let model = shipped(name);
        let cases = 400 * Config::default().cases / 256;
        let rng_seed = RngSeed::Fixed(11);
        let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
        TestRunner::new(config)
            .run(&random::test(), |test| {
                agrees(&test, "random", &model, 1);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// 24 branches have 16 million paths. No list of them may be needed, nor refuse the test.
#[test]
fn a_test_with_very_many_paths_is_decided() {
    let rows: Vec<String> = (0..24)
        .map(|branch| {
            format!(
                "ld.atom.dv.sc0 r0, f{branch} | st.atom.dv.sc0 f{branch}, 1 ;\nbeq r0, 0, LC{branch} | ;\n\
                 st.atom.dv.sc0 g, {} | ;\nLC{branch}: | ;\n",
                branch + 1
            )
        })
        .collect();
    let text = format!(
        "VULKAN paths\n{{ g = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n{}exists (g == 24)",
        rows.concat()
    );
    let test = litmus::parse(&text, "paths").unwrap();
    let model = shipped("vulkan");
    model.prepare(&test).unwrap();
    let options = PredictOptions { budget: Budget::from_steps(50_000), unroll: 1 };
    let decided = predict_without_outcomes(&test, &model, &options).unwrap();
    assert_eq!((decided.race, decided.can_meet_condition), (Race::Free, Some(true)));
}
