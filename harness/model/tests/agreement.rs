//! The engine compared with the naive enumerator: the same outcomes and races, on random tests and on the
//! corpus.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::{common, languages};

use std::collections::HashSet;

use litmus::{Flow, InstructionKind, Outcome, Test};
use model::internals::{BudgetTracker, find_allowed_outcomes, machine_outcomes};
use model::{Budget, Model, PredictError, PredictOptions, naive, predict};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::oracle::{UNLIMITED, assert_agreement, check_cases, outcomes_where, shipped, soak_cases};

/// Maximum number of candidate executions of the naive enumerator for one test.
const MAX_EXECUTIONS: u64 = 20_000;

/// Compares engine and oracle; false if the test is too large for the oracle.
fn compare(test: &Test, model: &Model) -> Result<bool, TestCaseError> {
    let failed = |error: PredictError| TestCaseError::fail(error.to_string());
    let slow = match naive::enumerate(test, model, 1, MAX_EXECUTIONS) {
        Ok(Some(slow)) => slow,
        // The generator also draws calls and sections that no device supports.
        Ok(None) | Err(PredictError::NotAvailable { .. }) => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let fast = predict(test, model, &UNLIMITED).map_err(failed)?;
    assert_agreement(test, &fast, &slow, true)?;
    // Queries of given outcomes agree with the list.
    let asked = fast.outcomes.keys().collect();
    let tracker = BudgetTracker::new(Budget::UNLIMITED);
    match find_allowed_outcomes(test, model, &fast.observables, &asked, 1, &tracker) {
        Ok(Some(found)) if found.iter().collect::<HashSet<_>>() == slow.allowed.iter().collect() => {}
        // If a loop may be cut off, an unobserved outcome is unknown.
        Ok(None) if has_loop(test) => {}
        found => {
            let text = litmus::print(test);
            return Err(TestCaseError::fail(format!(
                "asked alone, the allowed outcomes are {found:?}\n{text}"
            )));
        }
    }
    Ok(true)
}

fn has_loop(test: &Test) -> bool {
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions
        .into_iter()
        .any(|instruction| matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_))))
}

/// Returns the number of random tests per model and their seed.
fn case_count_and_seed() -> (u32, RngSeed) {
    soak_cases(80, 20)
}

fn assert_agrees_on_random_tests(name: &str) {
    assert_agrees_on(name, common::programs("plain"), 1);
}

/// Checks a model on a `1/share` fraction of the usual random tests.
fn assert_agrees_on(name: &str, tests: impl Strategy<Value = Test>, share: u32) {
    let model = shipped(name);
    let (cases, rng_seed) = case_count_and_seed();
    let cases = cases / share;
    let compared = std::cell::Cell::new(0u32);
    check_cases((cases, rng_seed), &tests, |test| {
        compared.set(compared.get() + u32::from(compare(&test, &model)?));
        Ok(())
    });
    println!("{name}: {} of {cases} random tests compared", compared.get());
    assert!(compared.get() > cases / 2, "most random tests must be small enough to compare");
}

macro_rules! on_random_tests {
    ($($test:ident: $model:literal,)*) => {
        $(#[test]
        fn $test() {
            assert_agrees_on_random_tests($model);
        })*

        /// Every model that supports these tests is in the lists above.
        #[test]
        fn every_profile_is_compared() {
            let compared = [$($model),*];
            for (name, _) in Model::shipped_models() {
                let model = shipped(name);
                // `wgsl` refuses most of the programs; another test covers it.
                let other = !model.supports_dialect(litmus::Dialect::Vulkan) || *name == "wgsl";
                assert!(other || compared.contains(name), "{name}");
            }
        }
    };
}

on_random_tests! {
    vulkan_on_random_tests: "vulkan",
    vulkan_nochains_on_random_tests: "vulkan-nochains",
    vulkan_by_letter_on_random_tests: "vulkan-by-letter",
    vulkan_apart_on_random_tests: "vulkan-apart",
    vulkan_together_on_random_tests: "vulkan-together",
    vulkan_1_4_305_on_random_tests: "vulkan-1.4.305",
    vulkan_1_4_305_nochains_on_random_tests: "vulkan-1.4.305-nochains",
    vulkan_2024_on_random_tests: "vulkan-2024",
    vulkan_2024_nochains_on_random_tests: "vulkan-2024-nochains",
    vulkan_1_2_on_random_tests: "vulkan-1.2",
    vulkan_1_2_nochains_on_random_tests: "vulkan-1.2-nochains",
    vulkan_2019_on_random_tests: "vulkan-2019",
    vulkan_2019_nochains_on_random_tests: "vulkan-2019-nochains",
    dartagnan_on_random_tests: "dartagnan",
    dartagnan_nochains_on_random_tests: "dartagnan-nochains",
    khronos_alloy_on_random_tests: "khronos-alloy",
    khronos_alloy_nochains_on_random_tests: "khronos-alloy-nochains",
    sc_on_random_tests: "sc",
    serial_on_random_tests: "serial",
    tso_on_random_tests: "tso",
    ptx_on_random_tests: "ptx",
    opencl_on_random_tests: "opencl",
    opencl_3_1_on_random_tests: "opencl-3.1",
    amdgpu_on_random_tests: "amdgpu",
}

/// Sequentially consistent operations, which only these models support.
#[test]
fn models_on_random_tests_of_sequential_consistency() {
    for name in ["ptx", "opencl", "opencl-3.1", "amdgpu", "sc"] {
        assert_agrees_on(name, common::programs("sequential"), 2);
    }
}

#[test]
fn wgsl_on_random_programs_of_wgsl() {
    assert_agrees_on("wgsl", common::programs("plain").prop_map(|test| languages::as_wgsl(&test)), 1);
}

/// Undefined initial values: an uninitialized read may return any value, and every search detects it.
#[test]
fn models_on_random_tests_with_undefined_values() {
    for name in ["vulkan", "vulkan-2019-nochains", "khronos-alloy", "sc", "tso"] {
        assert_agrees_on(name, common::programs("undefined"), 2);
    }
}

/// Vectors: each component is a separate operation.
#[test]
fn vulkan_on_random_tests_of_vectors() {
    assert_agrees_on("vulkan", common::programs("mixed"), 4);
}

#[test]
fn other_models_on_random_tests_of_vectors() {
    for name in ["vulkan-2024-nochains", "khronos-alloy", "dartagnan", "sc", "tso"] {
        assert_agrees_on(name, common::programs("vectors"), 8);
    }
}

/// A program with vectors has the same outcomes as one with an instruction per component.
#[test]
fn vectors_mean_what_their_components_mean() {
    let (cases, rng_seed) = case_count_and_seed();
    let names = ["vulkan", "vulkan-nochains", "vulkan-1.2", "dartagnan", "khronos-alloy"];
    let models: Vec<Model> = names.iter().map(|name| shipped(name)).collect();
    let told_apart = std::cell::Cell::new(0u32);
    check_cases((cases, rng_seed), &(common::programs("vectors"), 0..models.len()), |(mut test, index)| {
        for sync in &mut test.system_sync {
            (sync.from.instruction, sync.to.instruction) = (None, None);
        }
        let predict_test = |test: &Test| {
            predict(test, &models[index], &UNLIMITED).map_err(|e| TestCaseError::fail(e.to_string()))
        };
        let (vectors, components) = (predict_test(&test)?, predict_test(&common::split_vectors(&test))?);
        prop_assert_eq!(vectors.race, components.race, "{}", litmus::print(&test));
        let listed_outcomes = |prediction: &litmus::Prediction| -> Vec<(Outcome, bool, bool)> {
            let outcomes = prediction.outcomes.iter();
            outcomes.map(|(outcome, p)| (outcome.clone(), p.allowed, p.serial)).collect()
        };
        prop_assert_eq!(listed_outcomes(&vectors), listed_outcomes(&components), "{}", litmus::print(&test));
        // Sequential consistency orders instructions, not components.
        for (outcome, whole) in &vectors.outcomes {
            let component_verdict = &components.outcomes[outcome];
            prop_assert!(whole.weak || !component_verdict.weak, "{:?} of {}", outcome, litmus::print(&test));
            told_apart.set(told_apart.get() + u32::from(whole.weak && !component_verdict.weak));
        }
        Ok(())
    });
    assert!(told_apart.get() > 0, "no torn vector among the tests");
}

/// Treating each vector access as one node in acyclicity axioms would change nothing for programs without
/// races, and the same programs race.
#[test]
fn whole_vectors_differ_only_where_programs_race() {
    let (cases, rng_seed) = case_count_and_seed();
    let model = shipped("vulkan");
    let (free, torn) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    check_cases((cases, rng_seed), &common::programs("mixed"), |mut test| {
        // A filter would exclude racy executions.
        test.filter = None;
        let failed = |e: model::PredictError| TestCaseError::fail(e.to_string());
        let Some(apart) = naive::enumerate(&test, &model, 1, MAX_EXECUTIONS).map_err(failed)? else {
            return Ok(());
        };
        let Some(whole) = naive::enumerate_whole_vectors(&test, &model, 1, MAX_EXECUTIONS).map_err(failed)?
        else {
            return Ok(());
        };
        prop_assert_eq!(apart.race, whole.race, "{}", litmus::print(&test));
        prop_assert!(whole.allowed.is_subset(&apart.allowed), "{}", litmus::print(&test));
        if apart.race == litmus::Race::Free {
            free.set(free.get() + 1);
            prop_assert_eq!(&apart.allowed, &whole.allowed, "{}", litmus::print(&test));
        }
        torn.set(torn.get() + u32::from(apart.allowed != whole.allowed));
        Ok(())
    });
    println!("{} free of races, {} told apart", free.get(), torn.get());
    assert!(free.get() > cases / 20 && torn.get() > 0);
}

/// Accesses of several sizes: the engine splits locations at the bounds of accesses, the oracle at every
/// byte.
#[test]
fn vulkan_on_random_tests_of_sizes() {
    assert_agrees_on("vulkan", common::programs("sizes"), 4);
}

#[test]
fn vulkan_2024_on_random_tests_of_sizes() {
    assert_agrees_on("vulkan-2024", common::programs("sizes"), 4);
}

#[test]
fn vulkan_on_random_tests_of_hosts() {
    assert_agrees_on("vulkan", common::programs("hosts"), 4);
}

#[test]
fn vulkan_2024_on_random_tests_of_hosts() {
    assert_agrees_on("vulkan-2024", common::programs("hosts"), 4);
}

#[test]
fn vulkan_on_random_tests_of_calls_and_sections() {
    assert_agrees_on("vulkan", common::programs("calls"), 4);
}

#[test]
fn vulkan_on_random_tests_of_cooperative_accesses() {
    assert_agrees_on("vulkan", common::programs("cooperative"), 4);
}

/// The stepwise machine composes values from bytes as the model does: an interleaving of the accesses of a
/// race-free program is an execution of it.
#[test]
fn sequential_outcomes_of_sizes_and_hosts_are_allowed() {
    let model = shipped("vulkan");
    let (cases, rng_seed) = case_count_and_seed();
    let strong = std::cell::Cell::new(0u32);
    check_cases(
        (cases, rng_seed),
        &proptest::sample::select(vec!["sizes", "mixed", "hosts", "calls", "cooperative"])
            .prop_flat_map(common::programs),
        |mut test| {
            // An interleaving may contradict the order of submissions or calls.
            test.system_sync.clear();
            let prediction = match predict(&test, &model, &UNLIMITED) {
                Err(PredictError::NotAvailable { .. }) => return Ok(()),
                answer => answer.map_err(|e| TestCaseError::fail(e.to_string()))?,
            };
            for (outcome, predicted) in prediction.outcomes.iter().filter(|(_, p)| !p.weak) {
                strong.set(strong.get() + 1);
                prop_assert!(predicted.allowed, "outcome {:?} of\n{}", outcome, litmus::print(&test));
            }
            Ok(())
        },
    );
    assert!(strong.get() > cases / 2, "most tests end in some order");
}

/// The queries of `.test` files: sizes, facts without axioms, forced values.
#[test]
fn queries_on_random_files() {
    let names = ["khronos-alloy", "khronos-alloy-nochains", "vulkan", "dartagnan"];
    let models: Vec<Model> = names.iter().map(|name| shipped(name)).collect();
    let (cases, rng_seed) = case_count_and_seed();
    let answers = std::cell::RefCell::new([0u32; 3]);
    check_cases((cases, rng_seed), &(common::programs("khronos"), 0..models.len()), |(test, index)| {
        let model = &models[index];
        let fast = model::answer_queries(&test, model, Some(model), &UNLIMITED)
            .map_err(|e| TestCaseError::fail(e.to_string()))?;
        for (query, fast) in test.khronos.iter().flat_map(|k| &k.queries).zip(fast) {
            let slow = naive::has_execution(&test, model, query, MAX_EXECUTIONS)
                .map_err(|e| TestCaseError::fail(e.to_string()))?;
            let Some(slow) = slow.map(|exists| query.is_correct(exists)) else {
                answers.borrow_mut()[2] += 1;
                continue;
            };
            answers.borrow_mut()[usize::from(slow)] += 1;
            prop_assert_eq!(fast, Some(slow), "{} of {}", query.text, litmus::print(&test));
        }
        Ok(())
    });
    let [wrong, right, too_large] = answers.into_inner();
    println!("{right} lines right, {wrong} wrong, {too_large} too large");
    assert!(wrong > cases / 4 && right > cases / 4, "queries of both answers");
}

/// The machine of forward progress finds exactly the outcomes that a cat file allows.
fn assert_machine_agrees(name: &str, is_compared: impl Fn(&Test) -> bool) {
    let model = shipped(name);
    let (cases, rng_seed) = case_count_and_seed();
    let compared = std::cell::Cell::new(0u32);
    check_cases(
        (cases, rng_seed),
        &prop_oneof![3 => common::programs("plain"), 1 => common::programs("sequential")],
        |test| {
            // The machine has no loop bound, and waits for the end of a thread that skips an instruction with a successor.
            if has_loop(&test) || !is_compared(&test) {
                return Ok(());
            }
            let prediction =
                predict(&test, &model, &UNLIMITED).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let allowed = outcomes_where(&prediction, |predicted| predicted.allowed);
            let found = machine_outcomes(&test, name == "serial");
            let found = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(found, allowed, "{}", litmus::print(&test));
            compared.set(compared.get() + 1);
            Ok(())
        },
    );
    println!("{name}: {} of {cases}", compared.get());
    assert!(compared.get() > cases / 4, "few tests are compared");
}

#[test]
fn machine_agrees_with_sc() {
    assert_machine_agrees("sc", |_| true);
}

/// The machine waits at control barriers, and serial execution does not.
#[test]
fn machine_agrees_with_serial() {
    assert_machine_agrees("serial", |test| {
        let mut kinds = test.threads.iter().flat_map(|thread| &thread.instructions);
        !kinds.any(|instruction| matches!(instruction.kind, InstructionKind::ControlBarrier(_)))
    });
}

/// In serial execution, control barriers do not wait; other waits force a thread to be interrupted.
#[test]
fn serial_execution_interrupts_only_threads_that_wait() {
    let serial = shipped("serial");
    for (text, is_allowed) in [
        // The barrier makes threads wait, but its order does not count.
        (
            "VULKAN t\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n\
            st.sc0 x, 1 | cbar.wg 0 ;\ncbar.wg 0 | ld.sc0 r0, x ;\nexists (P1:r0 == 0)",
            true,
        ),
        // Each thread is interrupted by the other one.
        (
            "VULKAN t\n{ x = 0; y = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
            st.sc0 x, 1 | st.sc0 y, 1 ;\nld.sc0 r0, y | ld.sc0 r0, x ;\nexists (P0:r0 == 1 /\\ P1:r0 == 1)",
            false,
        ),
        // The lanes exchange values between their accesses.
        (
            "VULKAN t\n{ x = 0; y = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;\n\
            st.sc0 x, 1 | st.sc0 y, 1 ;\nsg.ballot r1, 1, 0 | sg.ballot r1, 1, 0 ;\n\
            ld.sc0 r0, y | ld.sc0 r0, x ;\nexists (P0:r0 == 1 /\\ P1:r0 == 1)",
            true,
        ),
        // The host submits the device's thread between its accesses, and waits for it.
        (
            "VULKAN t\n{ buffer u32 x [host] = 0; }\nP0@host | P1@sg 0, wg 0, qf 0 ;\n\
            st.sc0 x, 1 | ld.sc0 r0, x ;\nsubmit P1 | st.sc0 x, 2 ;\nwait P1 | ;\nld.sc0 r0, x | ;\n\
            exists (P0:r0 == 2 /\\ P1:r0 == 1)",
            true,
        ),
        // Nothing makes the host wait after it has submitted the thread.
        (
            "VULKAN t\n{ buffer u32 x [host] = 0; }\nP0@host | P1@sg 0, wg 0, qf 0 ;\n\
            submit P1 | ld.sc0 r0, x ;\nst.sc0 x, 1 | ;\nst.sc0 x, 2 | ;\nexists (P1:r0 == 1)",
            false,
        ),
    ] {
        let test = litmus::parse(text, "t").unwrap();
        let prediction = predict(&test, &serial, &UNLIMITED).unwrap();
        assert_eq!(prediction.can_meet_condition, Some(is_allowed), "{text}");
    }
}

#[test]
fn the_corpus() {
    let models: Vec<Model> = Model::shipped_models().iter().map(|(name, _)| shipped(name)).collect();
    // A soak compares every pair of a test and a model, other runs one in eight.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 8 };
    let (mut compared, mut refused, mut too_large) = (0, 0, Vec::new());
    for (number, entry) in litmus::corpus::tests().into_iter().enumerate() {
        let test = litmus::parse(entry.text, &entry.id).unwrap_or_else(|e| panic!("{}: {e:?}", entry.id));
        let judging = models.iter().filter(|model| model.supports_dialect(test.dialect));
        for model in judging.skip(number % share).step_by(share) {
            // Other tools do not support this feature, so only the texts of the specification decide.
            if let Err(model::PredictError::NotAvailable { what }) = predict(&test, model, &UNLIMITED) {
                assert!(!model.name().starts_with("vulkan"), "{} under {}: {what}", entry.id, model.name());
                refused += 1;
                continue;
            }
            match compare(&test, model) {
                Ok(true) => compared += 1,
                Ok(false) => too_large.push(format!("{} {}", model.name(), entry.id)),
                Err(why) => panic!("{} under {}: {why}", entry.id, model.name()),
            }
        }
    }
    println!(
        "{compared} comparisons, {refused} refused; {} too large for the oracle: {too_large:?}",
        too_large.len()
    );
    assert!(compared > 0);
}

/// Predicts a program under sequential consistency, for which the axioms and the machine must agree on every outcome.
fn predict_where_both_agree(text: &str) -> litmus::Prediction {
    let test = litmus::parse(text, "t").unwrap();
    let prediction = predict(&test, &shipped("sc"), &PredictOptions::default()).unwrap();
    let allowed = outcomes_where(&prediction, |predicted| predicted.allowed);
    assert_eq!(machine_outcomes(&test, false).unwrap(), allowed, "{text}");
    prediction
}

/// Both outcomes occur, in the axioms and in the machine, with instances of control barriers that name one resource
/// (Dartagnan groups named barriers by instance and resource), and a pair of `ssw` with an instruction that has no event.
#[test]
fn waits_that_order_nothing() {
    for text in [
        "VULKAN t\n{ x = 0; }\nP0@sg 0, wg 1, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        cbar.inv 1, 1 | st.sc0 x, 1 ;\n\
        ld.sc0 r0, x | cbar.inv 0, 1 ;\nexists (P0:r0 == 0)",
        "VULKAN t\n{ x = 0; }\n{ ssw P1.1 0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, x ;\n\
        | beq r0, 0, LC00 ;\n| LC00: ;\nexists (P1:r0 == 1)",
    ] {
        let prediction = predict_where_both_agree(text);
        assert_eq!(prediction.outcomes.len(), 2, "{text}");
        assert!(prediction.outcomes.values().all(|predicted| predicted.allowed), "{text}");
    }
}

/// The successor of a skipped instruction may be first. The machine waits for the end of the thread.
#[test]
fn skipped_instructions_order_nothing() {
    let text = "VULKAN t\n{ x = 0; y = 0; }\n{ ssw P0.2 P1.0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        ld.atom.dv.sc0 r0, y | st.atom.dv.sc0 y, 1 ;\n\
        bne r0, 0, LC00 | ;\n\
        st.atom.dv.sc0 x, 1 | ;\n\
        LC00: | ;\nexists (P0:r0 == 1)";
    let prediction = predict(&litmus::parse(text, "t").unwrap(), &shipped("sc"), &UNLIMITED).unwrap();
    let answers = (prediction.can_meet_condition, prediction.can_miss_condition);
    assert_eq!(answers, (Some(true), Some(true)));
}

/// After a control barrier, `ssw` orders later events after all events before the synchronized barriers.
#[test]
fn system_synchronization_passes_through_control_barriers() {
    let text = "VULKAN t\n{ x = 0; }\n{ ssw 1 0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 1, wg 1, qf 0 ;\n\
        st.atom.dv.sc0 x, 1 | cbar.wg 1 | ld.atom.dv.sc0 r0, x ;\n\
        | | cbar.wg 1 ;\nexists (P2:r0 == 1)";
    assert_eq!(predict_where_both_agree(text).can_meet_condition, Some(false));
}

/// A quorum that others complete leaves a member free: the instruction that it waits for may still be executed.
#[test]
fn a_quorum_decides_nothing_about_members_that_it_does_not_need() {
    let text = |members: &str, quorum: u32| {
        format!(
            "VULKAN t\n{{ x = 0; y = 0; z = 0; }}\n{{ ssw P3.3 P2.0; }}\n\
            P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 | P2@sg 0, wg 0, qf 0 | P3@sg 0, wg 1, qf 0 ;\n\
            cbar.wg 0, 1, {quorum} | {members} | cbar.wg 0, 1, {quorum} | ld.atom.dv.sc0 r0, z ;\n\
            st.atom.dv.sc0 z, 1 | | | ld.atom.dv.sc0 r1, y ;\n\
            | | | bne r1, 0, LC00 ;\n\
            | | | st.atom.dv.sc0 x, 1 ;\n\
            | | | LC00: ;\nexists (P3:r0 == 1 /\\ x == 1)"
        )
    };
    for (text, is_reached) in [
        (text("cbar.wg 0, 1, 2", 2), true),
        (text("", 1), true),
        // Here the quorum needs the member, which waits for the store to `x`.
        (text("", 2), false),
    ] {
        assert_eq!(predict_where_both_agree(&text).can_meet_condition, Some(is_reached), "{text}");
    }
}
