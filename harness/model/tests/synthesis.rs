//! Synthesized tests are minimal, and distinguishing tests distinguish their models.
#![expect(clippy::unwrap_used, reason = "tests")]

use litmus::{Access, InstructionKind, Reachability, Test};
use model::mutation::Difference;
use model::synthesis::{
    Distinction, FormVocabulary, SHAPES, Telling, TestConstraints, TestStanding, distinguish,
    distinguish_all, minimal_below, operations, placements, standing_of, weakenings,
};
use model::{Budget, Model, PredictOptions, naive, predict_summary};

const PATIENCE: PredictOptions = PredictOptions { budget: Budget::UNLIMITED, unroll: 1 };

fn shipped(name: &str) -> Model {
    Model::shipped(name).unwrap().unwrap()
}

fn cells(name: &str, level: usize) -> Vec<Telling> {
    let shape = SHAPES.iter().find(|shape| shape.name == name).unwrap();
    shape.cells(&placements(shape.threads(), false)[level])
}

fn standing(test: &Test, model: &Model) -> TestStanding {
    standing_of(test, &predict_summary(test, model, &PATIENCE).unwrap())
}

/// The printed form parses to the same test.
#[track_caller]
fn assert_reads_back(test: &Test) {
    let printed = litmus::print(test);
    let again = litmus::parse(&printed, "printed").unwrap();
    assert_eq!(litmus::print(&again), printed);
}

#[test]
fn strongest_tests_parse_and_are_forbidden_under_sc() {
    let sc = shipped("sc");
    for shape in SHAPES {
        for places in placements(shape.threads(), true) {
            for cell in shape.cells(&places) {
                let top = cell.top();
                assert_reads_back(&top);
                let standing = standing(&top, &sc);
                // Control barriers only synchronize within a workgroup.
                assert!(
                    standing == TestStanding::Forbidden || shape.name.contains("cbar"),
                    "{}",
                    litmus::print(&top)
                );
            }
        }
    }
}

/// Returns the number of minimal tests of a shape over all styles, in two workgroups of one queue family.
fn minimal(name: &str, plain: bool) -> usize {
    let model = shipped("vulkan");
    let mut count = 0;
    for cell in cells(name, 0).into_iter().filter(|cell| cell.plain == plain) {
        let below = minimal_below(&cell.top(), &model, &PATIENCE, 100_000).unwrap();
        assert!(below.complete, "{}", cell.name());
        for minimal in &below.minimal {
            assert_reads_back(&minimal.test);
            assert_eq!(standing(&minimal.test, &model), TestStanding::Forbidden);
            for weaker in weakenings(&minimal.test) {
                assert_ne!(standing(&weaker.test, &model), TestStanding::Forbidden, "{}", weaker.step);
            }
            for twin in &minimal.twins {
                assert_eq!(standing(&twin.test, &model), TestStanding::Allowed, "{}", twin.step);
            }
        }
        count += below.minimal.len();
    }
    count
}

#[test]
fn minimal_tests_cannot_be_weakened() {
    // A payload of atomics only needs order: one test for each of the nine pairs of styles.
    assert_eq!(minimal("MP", false), 9);
    // A plain payload also needs availability and visibility, each in the access or in the semantics: four
    // tests per pair.
    assert_eq!(minimal("MP", true), 36);
    assert_eq!(minimal("LB", false), 9);
    for coherence in ["CoRR", "CoRW1", "CoRW2", "CoWR", "CoWR0", "CoWW", "RMW+RMW", "RMW+W"] {
        assert_eq!(minimal(coherence, false), 1, "{coherence}");
    }
}

#[test]
fn naive_enumeration_agrees_that_minimal_tests_are_minimal() {
    let model = shipped("vulkan");
    for cell in cells("MP", 0).into_iter().filter(|cell| !cell.plain) {
        for minimal in minimal_below(&cell.top(), &model, &PATIENCE, 100_000).unwrap().minimal {
            let stands = |test: &Test| {
                let slow = naive::enumerate(test, &model, 1, 1_000_000).unwrap().unwrap();
                let fast = predict_summary(test, &model, &PATIENCE).unwrap();
                assert_eq!(slow.race, fast.race);
                assert_eq!(slow.allowed.len(), fast.allowed.len());
                standing_of(test, &fast)
            };
            assert_eq!(stands(&minimal.test), TestStanding::Forbidden);
            for twin in &minimal.twins {
                assert_eq!(stands(&twin.test), TestStanding::Allowed);
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
    assert_eq!(standing(&litmus::parse(text, "SB").unwrap(), &model), TestStanding::Allowed);
}

/// Returns the smallest test, after checking that its text parses and contains the verdicts of the models.
#[track_caller]
fn smallest(first: &str, second: &str, events: usize) -> Option<Distinction> {
    let models = [shipped(first), shipped(second)];
    let found = distinguish(&models[0], &models[1], events, &PATIENCE).unwrap()?;
    assert_reads_back(&found.test);
    let again = litmus::parse(&litmus::print(&found.test), "printed").unwrap();
    for (model, expectation) in models.iter().zip(&again.metadata.expectations) {
        let verdict = predict_summary(&again, model, &PATIENCE).unwrap();
        assert_eq!(expectation.model, model.name());
        assert_eq!(expectation.race, Some(verdict.race));
        let observables = again.observables();
        let condition = &again.question.as_ref().unwrap().condition;
        let met =
            verdict.allowed.iter().any(|outcome| outcome.meets_condition(&again, &observables, condition));
        assert_eq!(expectation.reachability == Reachability::Allowed, met);
    }
    Some(found)
}

#[test]
fn sequential_consistency_and_total_store_order_differ_on_store_buffering() {
    assert_eq!(smallest("sc", "tso", 3), None);
    let found = smallest("sc", "tso", 4).unwrap();
    assert_eq!((found.difference, operations(&found.test)), (Difference::Outcome, 4));
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn the_text_of_2024_differs_on_a_read_of_a_plain_write() {
    let found = smallest("vulkan", "vulkan-2024", 3).unwrap();
    assert_eq!((found.difference, operations(&found.test)), (Difference::Outcome, 3));
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn dartagnan_differs_on_final_values() {
    let found = smallest("vulkan", "dartagnan", 2).unwrap();
    assert_eq!(found.difference, Difference::Outcome);
    insta::assert_snapshot!(litmus::print(&found.test));
}

#[test]
fn a_model_does_not_differ_from_itself() {
    assert_eq!(smallest("vulkan", "vulkan", 2), None);
    assert_eq!(smallest("tso", "tso", 3), None);
}

#[test]
fn programs_are_enumerated_once() {
    let model = shipped("sc");
    let mut seen = std::collections::BTreeSet::new();
    for size in 1..=3 {
        let flow = FormVocabulary::of(&[&model]).for_each(size, &mut |test| {
            assert_eq!(operations(&test), size);
            assert!(seen.insert(litmus::print(&test)), "twice:\n{}", litmus::print(&test));
            std::ops::ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
    }
    assert!(seen.len() > 20);
}

/// Several results are distinct, distinguish the models, satisfy the constraints, and begin with the
/// smallest.
#[test]
fn several_distinguishing_tests() {
    let (first, second) = (shipped("sc"), shipped("tso"));
    let wanted = TestConstraints { tests: 6, operations: 5, threads: 2, atomic: true };
    let found = distinguish_all(&first, &second, &wanted, &PATIENCE).unwrap();
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
        let verdicts = [&first, &second].map(|model| predict_summary(test, model, &PATIENCE).unwrap());
        assert_eq!(Difference::between(&verdicts[0], &verdicts[1]), Some(distinction.difference));
    }
    let sizes: Vec<usize> = found.iter().map(|found| operations(&found.test)).collect();
    assert!(sizes.is_sorted(), "{sizes:?}");
    let one = distinguish_all(&first, &second, &TestConstraints { tests: 1, ..wanted }, &PATIENCE).unwrap();
    assert_eq!(one, found[..1]);
}
