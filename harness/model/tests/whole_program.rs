//! The encoding of all paths of a program against the search by combinations of paths.

use std::collections::HashMap;

use litmus::{
    Condition, InstructionKind, LocationId, Placement, Race, StorageClass, Term, Test, ThreadPlace,
};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed};

use model::internals::{ExplorationStrategy, decide_by_encoding, find_swaps, predict_with_strategy};
use model::{Budget, Model, PredictOptions, predict_without_outcomes};

use crate::common as random;
use crate::oracle::{check_cases, shipped};
use crate::strategies::{counter_tests, scope_width, slot_tests, widen_scopes};

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
    let has_question = test.question.is_some();
    let is_answered = searched.can_meet_condition.is_some() && searched.can_miss_condition.is_some();
    // A search that was cut short.
    if searched.truncated_runs == 0 && (searched.race == Race::Unknown || has_question && !is_answered) {
        return false;
    }
    let implies = |one: bool, other: bool| !one || other;
    // The encoding knows that some loops repeat for ever, whose runs the search counts as cut off.
    let is_equal = found.0 == expected.0 && (!has_question || (found.1, found.2) == (expected.1, expected.2));
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

#[test]
fn the_encoding_agrees_with_the_search_on_the_corpus() {
    for (name, unroll, least) in [
        ("vulkan", 1, 400),
        ("vulkan", 2, 400),
        ("dartagnan", 1, 100),
        ("sc", 1, 100),
        ("ptx", 1, 100),
        ("hsa", 1, 60),
    ] {
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
    let of_vulkan = random::programs("plain").boxed();
    let to_test = |text: String| litmus::parse(&text, "random").unwrap();
    let of_hsa = crate::random::text(2..=3, 3).prop_map(to_test).boxed();
    for (name, tests) in
        [("vulkan", &of_vulkan), ("khronos-alloy", &of_vulkan), ("ptx", &of_vulkan), ("hsa", &of_hsa)]
    {
        let model = shipped(name);
        let cases = 400 * Config::default().cases / 256;
        let compared = std::cell::Cell::new(0u32);
        check_cases((cases, RngSeed::Fixed(11)), tests, |test| {
            compared.set(compared.get() + u32::from(agrees(&test, "random", &model, 1)));
            Ok(())
        });
        println!("{name}: {} tests", compared.get());
        assert!(4 * compared.get() >= cases, "{name}: {} of {cases}", compared.get());
    }
}

/// Tests with symmetric threads, on equal or different memory, in one subgroup or workgroup or in several.
fn symmetric_tests() -> impl Strategy<Value = Test> {
    let threads = proptest::collection::vec((0..6u32, (0..2u32, 0..2u32)), 3..5);
    (random::programs("plain"), random::programs("plain"), threads, 0..3u32).prop_map(
        |(mut test, other, threads, filter)| {
            let bodies = [test.threads[0].clone(), test.threads[1].clone()];
            let accesses = bodies.iter().flat_map(|thread| &thread.instructions);
            let mut classes: HashMap<LocationId, StorageClass> = HashMap::new();
            for place in accesses.filter_map(|i| i.kind.access()).map(|access| access.place) {
                classes.insert(place.location, place.class);
            }
            let mut thread = |(body, (workgroup, subgroup)): (u32, (u32, u32))| {
                let mut thread = bodies[usize::from(body == 5)].clone();
                thread.place =
                    ThreadPlace::Device(Placement { queue_family: 0, queue: 0, workgroup, subgroup });
                for access in thread.instructions.iter_mut().filter_map(|i| match &mut i.kind {
                    InstructionKind::Access(access) if body >= 3 => Some(access),
                    _ => None,
                }) {
                    // Two names with different initial values, or one with an alias.
                    let swapped = if body == 3 { [2, 3] } else { [0, 2] };
                    let place = &mut access.place;
                    if let Some(at) = swapped.iter().position(|other| place.location.0 == *other) {
                        place.location = LocationId(swapped[1 - at]);
                        place.class = *classes.entry(place.location).or_insert(place.class);
                    }
                }
                thread
            };
            test.threads = threads.into_iter().map(&mut thread).collect();
            let asks_others = |condition: &Condition| {
                let mut others = false;
                condition.for_each_term(&mut |term| {
                    others |= matches!(term, Term::Register(t, _) if usize::from(t.0) >= test.threads.len());
                });
                others
            };
            test.filter = other.question.filter(|_| filter > 0).map(|question| question.condition);
            test.filter = test.filter.filter(|condition| !asks_others(condition));
            test.system_sync.clear();
            test
        },
    )
}

/// Three threads that store their numbers and wait for each other, most of which may be swapped with numbers and flags.
fn numbered_tests() -> impl Strategy<Value = String> {
    let parts = (0..2usize, 0..3usize, 0..3usize, 0..3usize, 0..7usize);
    (parts, 0..4usize).prop_map(|((announce, order, wait, last, flaw), asked)| {
        let column = |own: usize| {
            let mut others: Vec<usize> = (1..=3).filter(|other| *other != own).collect();
            match order {
                0 => {}
                1 => others.reverse(),
                _ => others.rotate_left(own % 2),
            }
            let number = if (flaw, own) == (1, 3) { 2 } else { own };
            let mut lines = vec![format!("P{}@sg 0, wg {own}, qf 0", own - 1)];
            lines.push(match announce {
                0 => format!("rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis r0, t, {number}"),
                _ => format!("rmw.atom.cas.dv.sc0 r0, t, 0, {number}"),
            });
            for other in others {
                let compare = if flaw == 2 { "blt r0" } else { "bne r0" };
                lines.push(format!("{compare}, {other}, LC0{other}"));
                lines.push(match wait {
                    0 => format!("ld.atom.acq.dv.sc0.semsc0.semvis r1, g{other}"),
                    1 => format!("ld.atom.dv.sc0 r1, g{other}"),
                    _ => format!("st.atom.dv.sc0 g{other}, {}", if flaw == 3 { own } else { 1 }),
                });
                lines.extend([format!("bne r1, 1, LC0{other}"), "goto LC90".to_owned()]);
                lines.push(format!("LC0{other}:"));
            }
            if flaw == 4 {
                lines.push("add r0, r0, 1".to_owned());
            }
            lines.push("LC90:".to_owned());
            lines.push(["ld.sc0 r2, x", "st.sc0 x, 1", "st.atom.dv.sc0 x, 1"][last].to_owned());
            lines.push(format!("st.atom.rel.dv.sc0.semsc0.semav g{own}, 1"));
            lines
        };
        let columns: Vec<Vec<String>> = (1..=3).map(column).collect();
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
        let rows: String = (0..rows)
            .map(|row| columns.iter().map(|c| c.get(row).map_or("", String::as_str)).collect::<Vec<_>>())
            .map(|cells| cells.join(" | ") + " ;\n")
            .collect();
        let start = if flaw == 5 { 2 } else { 0 };
        let late = if flaw == 6 { 1 } else { 0 };
        let asked = ["P0:r0 == 2", "t == 3", "x == 1 /\\ P2:r1 == 1", "P0:r0 == P1:r0"][asked];
        format!(
            "VULKAN numbers\n{{ x = 0; t = {start}; g1 = 0; g2 = {late}; g3 = 0; }}\n{rows}exists ({asked})\n"
        )
    })
}

/// Of executions that differ by swaps of threads, the encoding considers one.
#[test]
fn the_encoding_agrees_with_the_search_on_symmetric_threads() {
    let (same, widened) = (symmetric_tests().boxed(), (symmetric_tests(), scope_width()).boxed());
    let widened = widened.prop_map(|(test, (least, classes))| widen_scopes(test, least, classes)).boxed();
    let numbered = numbered_tests().prop_map(|text| litmus::parse(&text, "numbers").unwrap()).boxed();
    let tests = [same, widened, counter_tests().boxed(), slot_tests().boxed(), numbered];
    for name in ["vulkan", "vulkan-2019-nochains", "dartagnan", "sc"] {
        let model = shipped(name);
        let swapped = std::cell::Cell::new(0u32);
        for (tests, cases) in tests.iter().zip([60, 60, 60, 60, 20]) {
            let cases = cases * Config::default().cases / 256;
            let rng_seed = RngSeed::Fixed(5);
            check_cases((cases, rng_seed), tests, |test| {
                let is_compared = agrees(&test, "symmetric", &model, 1);
                let has_swaps = !find_swaps(&test, model.execution_semantics()).is_empty();
                swapped.set(swapped.get() + u32::from(is_compared && has_swaps));
                Ok(())
            });
        }
        println!("{name}: {} tests with swaps", swapped.get());
        assert!(swapped.get() > 0 || Config::default().cases < 100, "{name}");
    }
}

/// If the condition distinguishes symmetric threads, the result for one order must not be reused for another.
#[test]
fn a_condition_that_distinguishes_threads() {
    let columns = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;\n\
        rmw.atom.add.dv.sc0 r0, x, 1 | rmw.atom.add.dv.sc0 r0, x, 1 | rmw.atom.add.dv.sc0 r0, x, 1 ;\n\
        bne r0, 0, LC00 | bne r0, 0, LC00 | bne r0, 0, LC00 ;\n\
        st.atom.dv.sc0 y, 1 | st.atom.dv.sc0 y, 1 | st.atom.dv.sc0 y, 1 ;\nLC00: | LC00: | LC00: ;\n";
    let model = Model::shipped("vulkan").unwrap().unwrap();
    for first in 0..3 {
        let text = format!("VULKAN apart\n{{ x = 0; y = 0; }}\n{columns}exists (P{first}:r0 == 0)\n");
        let test = litmus::parse(&text, "apart").unwrap();
        let found = decide_by_encoding(&test, &model, 1, Budget::UNLIMITED).unwrap().unwrap();
        assert!(found.can_meet_condition && found.can_miss_condition, "{first}");
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

/// A value that depends on itself by data is forbidden by PTX, and allowed by Vulkan.
#[test]
fn dependencies_are_encoded() {
    let text = "VULKAN LB\n{ x = 0; y = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        ld.atom.dv.sc0 r0, x | ld.atom.dv.sc0 r0, y ;\nxor r1, r0, r0 | xor r1, r0, r0 ;\n\
        add r1, r1, 1 | add r1, r1, 1 ;\nst.atom.dv.sc0 y, r1 | st.atom.dv.sc0 x, r1 ;\n\
        exists (P0:r0 == 1 /\\ P1:r0 == 1)";
    let test = litmus::parse(text, "LB").unwrap();
    for (name, expected) in [("ptx", false), ("vulkan", true)] {
        let found = decide_by_encoding(&test, &shipped(name), 1, Budget::UNLIMITED).unwrap();
        assert_eq!(found.map(|found| found.can_meet_condition), Some(expected), "{name}");
    }
}

/// Too large for the search: accesses of several cells, and HSA with dependencies and a recursive set of values.
#[test]
fn large_tests_of_every_instruction_are_decided() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/tests/parse_ok");
    for (file, name, race) in
        [("vectors", "vulkan", Race::Racy), ("hsa-every-instruction", "hsa", Race::Free)]
    {
        let text = std::fs::read_to_string(folder.join(file).with_extension("litmus")).unwrap();
        let test = litmus::parse(&text, file).unwrap();
        let found = decide_by_encoding(&test, &shipped(name), 1, Budget::from_steps(1_000_000)).unwrap();
        let found = found.map(|found| (found.race, found.can_meet_condition));
        assert_eq!(found, Some((race, false)), "{file}");
    }
}
