//! Synthesized tests are minimal, and distinguishing tests distinguish their models.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::oracle::{UNLIMITED, shipped};
use litmus::{Access, InstructionKind, Reachability, Test};
use model::mutation::Difference;
use model::synthesis::{
    ConditionVerdict, Distinction, FormVocabulary, SHAPES, ShapeVariant, TestConstraints, classify_condition,
    count_operations, find_distinctions, find_minimal_tests, placements, weaken_test,
};
use model::{Model, naive, predict_summary};

fn shape_variants(name: &str, level: usize) -> Vec<ShapeVariant> {
    let shape = SHAPES.iter().find(|shape| shape.name == name).unwrap();
    shape.variants(&placements(shape.thread_count(), false)[level])
}

fn classify_test(test: &Test, model: &Model) -> ConditionVerdict {
    classify_condition(test, &predict_summary(test, model, &UNLIMITED).unwrap())
}

/// The printed form parses to the same test.
#[track_caller]
fn assert_reads_back(test: &Test) {
    let printed = litmus::print(test);
    let reparsed = litmus::parse(&printed, "printed").unwrap();
    assert_eq!(litmus::print(&reparsed), printed);
}

#[test]
fn strongest_tests_parse_and_are_forbidden_under_sc() {
    let sc = shipped("sc");
    for shape in SHAPES {
        for places in placements(shape.thread_count(), true) {
            for cell in shape.variants(&places) {
                let top = cell.strongest_test();
                assert_reads_back(&top);
                let standing = classify_test(&top, &sc);
                // Control barriers only synchronize within a workgroup.
                assert!(
                    standing == ConditionVerdict::Forbidden || shape.name.contains("cbar"),
                    "{}",
                    litmus::print(&top)
                );
            }
        }
    }
}

/// Returns the number of minimal tests of a shape over all styles, in two workgroups of one queue family.
fn count_minimal_tests(name: &str, plain: bool) -> usize {
    let model = shipped("vulkan");
    let mut count = 0;
    for cell in shape_variants(name, 0).into_iter().filter(|cell| cell.has_plain_payload == plain) {
        let below = find_minimal_tests(&cell.strongest_test(), &model, &UNLIMITED, 100_000).unwrap();
        assert!(below.complete, "{}", cell.name());
        for minimal in &below.minimal {
            assert_reads_back(&minimal.test);
            assert_eq!(classify_test(&minimal.test, &model), ConditionVerdict::Forbidden);
            for weaker in weaken_test(&minimal.test) {
                assert_ne!(
                    classify_test(&weaker.test, &model),
                    ConditionVerdict::Forbidden,
                    "{}",
                    weaker.step
                );
            }
            for twin in &minimal.twins {
                assert_eq!(classify_test(&twin.test, &model), ConditionVerdict::Allowed, "{}", twin.step);
            }
        }
        count += below.minimal.len();
    }
    count
}

#[test]
fn minimal_tests_cannot_be_weakened() {
    // A payload of atomics only needs order: one test for each of the nine pairs of styles.
    assert_eq!(count_minimal_tests("MP", false), 9);
    // A plain payload also needs availability and visibility, each in the access or in the semantics: four
    // tests per pair.
    assert_eq!(count_minimal_tests("MP", true), 36);
    assert_eq!(count_minimal_tests("LB", false), 9);
    for coherence in ["CoRR", "CoRW1", "CoRW2", "CoWR", "CoWR0", "CoWW", "RMW+RMW", "RMW+W"] {
        assert_eq!(count_minimal_tests(coherence, false), 1, "{coherence}");
    }
}

#[test]
fn naive_enumeration_agrees_that_minimal_tests_are_minimal() {
    let model = shipped("vulkan");
    for cell in shape_variants("MP", 0).into_iter().filter(|cell| !cell.has_plain_payload) {
        for minimal in
            find_minimal_tests(&cell.strongest_test(), &model, &UNLIMITED, 100_000).unwrap().minimal
        {
            let stands = |test: &Test| {
                let slow = naive::enumerate(test, &model, 1, 1_000_000).unwrap().unwrap();
                let fast = predict_summary(test, &model, &UNLIMITED).unwrap();
                assert_eq!(slow.race, fast.race);
                assert_eq!(slow.allowed.len(), fast.allowed.len());
                classify_condition(test, &fast)
            };
            assert_eq!(stands(&minimal.test), ConditionVerdict::Forbidden);
            for twin in &minimal.twins {
                assert_eq!(stands(&twin.test), ConditionVerdict::Allowed);
            }
        }
    }
}

#[test]
fn no_annotation_orders_store_buffering() {
    // Store buffering needs a barrier or a common third location.
    let model = shipped("vulkan");
    let text = r"VULKAN SB
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0              | P1@sg 0, wg 1, qf 0              ;
st.atom.rel.dv.sc0.semsc0 x, 1   | st.atom.rel.dv.sc0.semsc0 y, 1   ;
membar.acq_rel.dv.semsc0         | membar.acq_rel.dv.semsc0         ;
ld.atom.acq.dv.sc0.semsc0 r0, y  | ld.atom.acq.dv.sc0.semsc0 r0, x  ;
exists (P0:r0 == 0 /\ P1:r0 == 0)";
    assert_eq!(classify_test(&litmus::parse(text, "SB").unwrap(), &model), ConditionVerdict::Allowed);
}

/// Returns the smallest test, after checking that its text parses and contains the verdicts of the models.
#[track_caller]
fn find_smallest_distinction(first: &str, second: &str, events: usize) -> Option<Distinction> {
    let models = [shipped(first), shipped(second)];
    let constraints = TestConstraints::single_test(events);
    let found = find_distinctions(&models[0], &models[1], &constraints, &UNLIMITED).unwrap().pop()?;
    assert_reads_back(&found.test);
    let reparsed = litmus::parse(&litmus::print(&found.test), "printed").unwrap();
    for (model, expectation) in models.iter().zip(&reparsed.metadata.expectations) {
        let verdict = predict_summary(&reparsed, model, &UNLIMITED).unwrap();
        assert_eq!(expectation.model, model.name());
        assert_eq!(expectation.race, Some(verdict.race));
        let observables = reparsed.observables();
        let condition = &reparsed.question.as_ref().unwrap().condition;
        let met =
            verdict.allowed.iter().any(|outcome| outcome.meets_condition(&reparsed, &observables, condition));
        assert_eq!(expectation.reachability == Reachability::Allowed, met);
    }
    Some(found)
}

#[test]
fn sequential_consistency_and_total_store_order_differ_on_store_buffering() {
    assert_eq!(find_smallest_distinction("sc", "tso", 3), None);
    let found = find_smallest_distinction("sc", "tso", 4).unwrap();
    assert_eq!((found.difference, count_operations(&found.test)), (Difference::Outcome, 4));
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn the_text_of_2024_differs_on_a_read_of_a_plain_write() {
    let found = find_smallest_distinction("vulkan", "vulkan-2024", 3).unwrap();
    assert_eq!((found.difference, count_operations(&found.test)), (Difference::Outcome, 3));
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn dartagnan_differs_on_final_values() {
    let found = find_smallest_distinction("vulkan", "dartagnan", 2).unwrap();
    assert_eq!(found.difference, Difference::Outcome);
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn a_model_does_not_differ_from_itself() {
    assert_eq!(find_smallest_distinction("vulkan", "vulkan", 2), None);
    assert_eq!(find_smallest_distinction("tso", "tso", 3), None);
}

#[test]
fn programs_are_enumerated_once() {
    let model = shipped("sc");
    let mut texts = std::collections::BTreeSet::new();
    for size in 1..=3 {
        let flow = FormVocabulary::from_models(&[&model]).for_each_program(size, &mut |test| {
            assert_eq!(count_operations(&test), size);
            assert!(texts.insert(litmus::print(&test)), "twice:\n{}", litmus::print(&test));
            std::ops::ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
    }
    assert!(texts.len() > 20);
}

/// Several results are distinct, distinguish the models, satisfy the constraints, and begin with the
/// smallest.
#[test]
fn several_distinguishing_tests() {
    let (first, second) = (shipped("sc"), shipped("tso"));
    let constraints = TestConstraints {
        max_tests: 6,
        min_operations: 1,
        max_operations: 5,
        max_threads: 2,
        only_atomic: true,
        only_race_free: false,
    };
    let found = find_distinctions(&first, &second, &constraints, &UNLIMITED).unwrap();
    assert_eq!(found.len(), 6);
    let mut printed = std::collections::BTreeSet::new();
    for distinction in &found {
        let test = &distinction.test;
        assert!(printed.insert(litmus::print(test)), "twice:\n{}", litmus::print(test));
        assert!(test.threads.len() <= 2, "{}", litmus::print(test));
        let plain = test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
            matches!(&instruction.kind, InstructionKind::Access(access)
                if !matches!(access.strength, Access::Atomic { .. }))
        });
        assert!(!plain, "{}", litmus::print(test));
        let verdicts = [&first, &second].map(|model| predict_summary(test, model, &UNLIMITED).unwrap());
        assert_eq!(Difference::compare(&verdicts[0], &verdicts[1]), Some(distinction.difference));
    }
    let sizes: Vec<usize> = found.iter().map(|found| count_operations(&found.test)).collect();
    assert!(sizes.is_sorted(), "{sizes:?}");
    let one =
        find_distinctions(&first, &second, &TestConstraints { max_tests: 1, ..constraints }, &UNLIMITED)
            .unwrap();
    assert_eq!(one, found[..1]);
}

/// The smallest difference of Vulkan and sequential consistency is a race, which a search for race-free tests skips.
#[test]
fn races_distinguish_only_if_they_are_wanted() {
    let (first, second) = (shipped("vulkan"), shipped("sc"));
    let find = |only_race_free| {
        let constraints = TestConstraints { only_race_free, ..TestConstraints::single_test(2) };
        find_distinctions(&first, &second, &constraints, &UNLIMITED).unwrap()
    };
    assert_eq!(find(false)[0].difference, Difference::RacyUnderFirst);
    assert_eq!(find(true), []);
}

/// A program that one of the models cannot judge distinguishes nothing, and does not end the search.
#[test]
fn programs_beyond_a_model_are_skipped() {
    let found =
        find_distinctions(&shipped("vulkan"), &shipped("wgsl"), &TestConstraints::single_test(2), &UNLIMITED);
    assert_eq!(found.unwrap().len(), 1);
}
