//! Differential tests: all exploration strategies agree with the naive enumerator.
//!
//! Long because all families of tests share one comparison with the enumerator.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use litmus::{
    Access, AccessKind, InstructionKind, Order, RmwOperation, Scope, Semantics, StorageClassSet, Test,
    ThreadPlace,
};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError};

use model::internals::{ExplorationStrategy, predict_with_strategy};
use model::naive;

use crate::common as random;
use crate::oracle::{UNLIMITED, assert_agreement, check_cases, outcomes_where, shipped};

/// The search path by path.
const SEARCH: ExplorationStrategy = ExplorationStrategy { whole_program: false, ..ExplorationStrategy::FULL };

/// Races, the question and each outcome by the encoding of all paths, as far as it supports the test.
const ENCODED: ExplorationStrategy =
    ExplorationStrategy { search_steps: 0, first_listing_steps: u64::MAX, ..ExplorationStrategy::FULL };

/// Scales a number of random tests with `PROPTEST_CASES`; its default of 256 gives `full`.
fn case_count(full: u32) -> u32 {
    full * Config::default().cases / 256
}

/// Checks that a strategy agrees with the naive enumerator.
fn assert_agrees(model: &str, strategy: ExplorationStrategy) {
    assert_agrees_on(&random::programs("plain"), 150, model, strategy);
}

fn assert_agrees_on(
    tests: &impl Strategy<Value = Test>,
    cases: u32,
    model: &str,
    strategy: ExplorationStrategy,
) {
    let model = shipped(model);
    check_cases((case_count(cases), RngSeed::Fixed(3)), tests, |test| {
        let Some(slow) = naive::enumerate(&test, &model, 1, 5_000).unwrap() else { return Ok(()) };
        let fast = predict_with_strategy(&test, &model, &UNLIMITED, strategy).unwrap();
        let is_undone = strategy.prefers_decision && !fast.complete && fast.outcomes.is_empty();
        assert_agreement(&test, &fast, &slow, strategy.lists_outcomes && !is_undone)
    });
}

#[test]
fn searches_without_the_solver() {
    for model in ["vulkan", "khronos-alloy", "dartagnan", "tso"] {
        assert_agrees(model, SEARCH);
    }
}

#[test]
fn decision_before_the_list() {
    for listing_steps in [0, u64::MAX] {
        let strategy = ExplorationStrategy {
            first_listing_steps: 0,
            listing_steps,
            ..ExplorationStrategy::DECIDE_THEN_LIST
        };
        assert_agrees("vulkan", strategy);
        assert_agrees("dartagnan", strategy);
    }
}

#[test]
fn outcomes_by_conflicts() {
    for model in [
        "vulkan",
        "vulkan-2024-nochains",
        "vulkan-2019",
        "vulkan-1.2-nochains",
        "khronos-alloy",
        "dartagnan",
        "sc",
        "tso",
        "ptx",
        "amdgpu",
    ] {
        assert_agrees(model, ENCODED);
    }
}

/// Tests with longer chains of synchronization than random tests.
#[test]
fn the_corpus_by_conflicts() {
    let model = shipped("vulkan");
    for entry in litmus::corpus::tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        if !model.supports_dialect(test.dialect) {
            continue;
        }
        let predict_with = |ways| {
            let prediction = predict_with_strategy(&test, &model, &UNLIMITED, ways).unwrap();
            (
                prediction.outcomes,
                prediction.race,
                prediction.can_meet_condition,
                prediction.can_miss_condition,
            )
        };
        assert_eq!(predict_with(ENCODED), predict_with(ExplorationStrategy::FULL), "{}", entry.id);
    }
}

#[test]
fn conditions_without_outcome_lists() {
    for model in ["vulkan", "vulkan-2019-nochains", "sc"] {
        assert_agrees(model, ExplorationStrategy { lists_outcomes: false, ..SEARCH });
    }
}

#[test]
fn undefined_values_in_every_search() {
    for strategy in [SEARCH, ExplorationStrategy { lists_outcomes: false, ..SEARCH }, ENCODED] {
        assert_agrees_on(&random::programs("undefined"), 150, "vulkan", strategy);
    }
}

/// Accesses of several sizes and components: an execution has several cells of a storage.
#[test]
fn cells_by_conflicts() {
    for tests in ["sizes", "vectors", "mixed"].map(random::programs) {
        assert_agrees_on(&tests, 150, "vulkan", ENCODED);
    }
}

/// A cycle of dependencies permits any value, and two are tried. A query that fails for both may hold for
/// another value.
#[test]
fn a_dependency_cycle_with_any_value() {
    let text = "VULKAN circle\n{ x = 0; y = 0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        ld.atom.dv.sc0 r0, x | ld.atom.dv.sc0 r0, y ;\n\
        add r1, r0, 1 | xor r1, r0, 1 ;\n\
        st.atom.dv.sc0 y, r1 | xor r1, r1, 0 ;\n | st.atom.dv.sc0 x, r1 ;\n\
        exists (P0:r0 == 2 /\\ P1:r0 == 5)\n";
    for text in [text.to_owned(), text.replace("add", "xor")] {
        let test = litmus::parse(&text, "circle").unwrap();
        let model = shipped("vulkan");
        let slow = naive::enumerate(&test, &model, 1, 5_000).unwrap().unwrap();
        let fast = predict_with_strategy(&test, &model, &UNLIMITED, ENCODED).unwrap();
        let allowed = outcomes_where(&fast, |predicted| predicted.allowed);
        assert_eq!((fast.can_meet_condition, allowed), (Some(false), slow.allowed), "{text}");
        assert!(!slow.thin_air.is_empty(), "{text}");
    }
}

/// Formats the rows of a program from columns of instructions separated by `;`.
fn table(columns: &[String], workgroup: impl Fn(usize) -> usize) -> String {
    let column = |(id, column): (usize, &String)| {
        let lines = column.split(';').map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        std::iter::once(format!("P{id}@sg 0, wg {}, qf 0", workgroup(id))).chain(lines).collect()
    };
    witness::generate::grammar::render_rows(&columns.iter().enumerate().map(column).collect::<Vec<_>>())
}

/// Symmetric threads that increment a counter and branch on the value read; optionally one more thread that
/// observes.
///
/// The condition is invariant under the symmetry, or distinguishes some threads.
pub fn counter_tests() -> impl Strategy<Value = Test> {
    let one = |words: &'static [&'static str]| proptest::sample::select(words);
    let operation = one(&[
        "add r0, x, 1",
        "add r0, x, 2",
        "xor r0, x, 1",
        "or r0, x, 1",
        "min r0, x, 1",
        "exchange r0, x, 1",
        "cas r0, x, 1, 0",
    ]);
    let order = one(&["", "acq", "rel", "acq_rel"]);
    let prefix = one(&[
        "",
        "st.atom.dv.sc0 d, 1",
        "rmw.atom.dv.sc0.add r2, d, 1",
        "st.sc0 d, 1",
        "ld.atom.dv.sc0 r2, y",
    ]);
    let suffix = one(&[
        "",
        "st.atom.dv.sc0 y, 1",
        "ld.atom.dv.sc0 r1, d",
        "rmw.atom.dv.sc0.add r1, y, 1",
        "st.atom.rel.dv.sc0.semsc0 x, 7",
    ]);
    let onlooker = one(&[
        "",
        "ld.atom.acq.dv.sc0.semsc0 r0, x; ld.atom.dv.sc0 r1, d",
        "st.atom.dv.sc0 x, 5",
        "rmw.atom.dv.sc0.add r0, x, 1",
    ]);
    let condition = one(&[
        "P0:r0 == P1:r0",
        "P1:r0 == 0 /\\ P2:r0 == 1",
        "x == 2",
        "~(x == 3)",
        "P2:r0 == 1 /\\ y == 1",
        "P0:r0 == P1:r0 \\/ P0:r0 == P2:r0 \\/ P1:r0 == P2:r0",
        "P2:r0 == 2 /\\ d == 1",
        "P0:r0 < P1:r0",
    ]);
    let filter = one(&["", "", "filter (y == 0)\n", "filter (P0:r0 == 0)\n"]);
    let shape = (3..4usize, proptest::option::of(0..3u32), proptest::bool::ANY);
    (operation, order, prefix, suffix, onlooker, condition, filter, shape).prop_map(
        |(operation, order, before, behind, onlooker, condition, filter, (count, value, together))| {
            let semantics = if order.is_empty() { String::new() } else { format!(".{order}") };
            let class = if order.is_empty() { "" } else { ".semsc0" };
            let (word, operands) = operation.split_once(' ').unwrap();
            let word = if word == "exchange" { String::new() } else { format!(".{word}") };
            let modify = format!("rmw.atom{semantics}.dv.sc0{class}{word} {operands}");
            let branch = value.map(|value| format!("bne r0, {value}, LC00"));
            let end = value.map(|_| "LC00:".to_owned());
            let lines = [Some(before.to_owned()), Some(modify), branch, Some(behind.to_owned()), end];
            let lines: Vec<String> = lines.into_iter().flatten().collect();
            let mut columns = vec![lines.join("; "); count];
            columns.extend((!onlooker.is_empty()).then(|| onlooker.to_owned()));
            let text = table(&columns, |thread| if together { 0 } else { thread });
            let text =
                format!("VULKAN counting\n{{ x = 0; y = 0; d = 0; }}\n{text}{filter}exists ({condition})\n");
            litmus::parse(&text, "counting").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
        },
    )
}

/// Threads that increment a counter, compared with every candidate execution. Few tests,
/// since the enumerator tries every order of the increments.
#[test]
fn threads_that_count() {
    for model in ["vulkan", "tso"] {
        assert_agrees_on(&counter_tests(), 64, model, ENCODED);
    }
}

/// Threads that take tickets from a counter and use them as an index, as a value to store, or not at all.
///
/// Optionally another thread reads the counter, or writes it without an RMW.
pub fn slot_tests() -> impl Strategy<Value = Test> {
    let one = |words: &'static [&'static str]| proptest::sample::select(words);
    let order = one(&["", "acq", "rel", "acq_rel"]);
    let step = one(&["1", "1", "1", "2"]);
    let scope = one(&["dv", "dv", "wg"]);
    let prefix = one(&["", "st.sc0 d, 1", "st.av.dv.sc0 d, 1", "st.atom.dv.sc0 d, 1"]);
    let slot_access = || {
        one(&[
            "",
            "st.sc0 a, 1",
            "st.sc0 b, 2",
            "ld.sc0 r1, d",
            "ld.vis.dv.sc0 r1, d",
            "ld.atom.dv.sc0 r1, x",
        ])
    };
    let waits = one(&[
        "",
        "ld.atom.acq.dv.sc0.semsc0 r2, x; bne r2, 3, LC09",
        "ld.atom.dv.sc0 r2, x; blt r2, 2, LC09",
    ]);
    let onlooker = one(&["", "", "ld.atom.acq.dv.sc0.semsc0 r0, x; ld.sc0 r1, d", "st.atom.dv.sc0 x, 2"]);
    let condition =
        one(&["x == 3", "P0:r0 == 1", "P0:r0 < P1:r0 /\\ x == 3", "P2:r0 == 2 /\\ P0:r0 == 0", "P0:r1 == 1"]);
    let shape = (0..3u32, proptest::bool::ANY, 0..3usize);
    let values = (slot_access(), slot_access(), waits, onlooker, condition, shape);
    (order, step, scope, prefix, values).prop_map(
        |(
            order,
            step,
            scope,
            before,
            (first, second, waits, onlooker, condition, (number, together, other)),
        )| {
            let semantics = if order.is_empty() { String::new() } else { format!(".{order}") };
            let class = if order.is_empty() { "" } else { ".semsc0" };
            let column = |thread: usize| {
                let step = if thread == other { step } else { "1" };
                format!(
                    "{before}; rmw.atom{semantics}.{scope}.sc0{class}.add r0, x, {step}; LC09:; {waits}; \
                     beq r0, {number}, LC00; {first}; goto LC01; LC00:; {second}; LC01:"
                )
            };
            let mut columns: Vec<String> = (0..3).map(column).collect();
            columns.extend((!onlooker.is_empty()).then(|| onlooker.to_owned()));
            let text = table(&columns, |thread| if together { 0 } else { thread });
            let init = "x = 0; a = 0; b = 0; d = 0; P0:r1 = 0;";
            let text = format!("VULKAN taking\n{{ {init} }}\n{text}exists ({condition})\n");
            litmus::parse(&text, "taking").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
        },
    )
}

/// Threads that take tickets: RMW chains compared with every candidate execution.
#[test]
fn threads_that_take_numbers() {
    for model in ["vulkan", "tso"] {
        assert_agrees_on(&slot_tests(), 100, model, ENCODED);
    }
    assert_agrees_on(&slot_tests(), 100, "vulkan", ExplorationStrategy::FULL);
}

/// Widens narrower scopes to `narrowest`, and replaces the storage classes of all semantics if given.
pub fn widen_scopes(mut test: Test, narrowest: Scope, classes: Option<StorageClassSet>) -> Test {
    let wide = |scope: &mut Scope| *scope = (*scope).max(narrowest);
    let order = |semantics: &mut Semantics| {
        if semantics.order != Order::Relaxed {
            semantics.classes = classes.unwrap_or(semantics.classes);
        }
    };
    for instruction in test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
        match &mut instruction.kind {
            InstructionKind::Access(access) => {
                if let AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. } =
                    &mut access.kind
                {
                    order(unequal);
                }
                match &mut access.strength {
                    Access::Private | Access::NonPrivate => {}
                    Access::Coherent { scope } => wide(scope),
                    Access::Atomic { scope, semantics } => {
                        wide(scope);
                        order(semantics);
                    }
                }
            }
            InstructionKind::Fence { scope, semantics } => {
                wide(scope);
                order(semantics);
            }
            InstructionKind::ControlBarrier(barrier) => {
                wide(&mut barrier.memory_scope);
                barrier.semantics.iter_mut().for_each(order);
            }
            _ => {}
        }
    }
    test.system_sync.clear();
    for thread in &mut test.threads {
        let is_system = |kind: &InstructionKind| matches!(kind, InstructionKind::System(_));
        thread.instructions.retain(|instruction| !is_system(&instruction.kind));
    }
    test
}

/// The scope width of a test, and the storage classes of all semantics if they must be equal.
pub fn scope_width() -> impl Strategy<Value = (Scope, Option<StorageClassSet>)> {
    let classes = (1..4u8).prop_map(|classes| Some(StorageClassSet(classes)));
    let one = (proptest::sample::select(vec![Scope::Workgroup, Scope::QueueFamily]), classes);
    proptest::prop_oneof![one, proptest::prelude::Just((Scope::Device, None))]
}

/// Placement affects only scopes that are narrower than it, and control barriers.
#[test]
fn placements_that_no_scope_distinguishes() {
    let places = proptest::collection::vec((0..2u32, 0..2u32), 3);
    let tests = (random::programs("plain"), random::programs("plain"), scope_width(), places).prop_map(
        |(test, other, (least, classes), places)| {
            // Longer threads, for chains of several links.
            let mut test = widen_scopes(test, least, classes);
            for (thread, more) in test.threads.iter_mut().zip(widen_scopes(other, least, classes).threads) {
                let follows = |kind: &InstructionKind| !matches!(kind, InstructionKind::Flow(_));
                let more = more.instructions.into_iter().filter(|i| follows(&i.kind));
                thread.instructions.extend(more);
            }
            let by_workgroup = least > Scope::Workgroup;
            let mut moved = test.clone();
            for (index, (workgroup, subgroup)) in places.into_iter().enumerate() {
                for test in [&mut test, &mut moved] {
                    let Some(thread) = test.threads.get_mut(index) else { continue };
                    let meets = |kind: &InstructionKind| matches!(kind, InstructionKind::ControlBarrier(_));
                    thread.instructions.retain(|i| !(by_workgroup && meets(&i.kind)));
                }
                let Some(ThreadPlace::Device(place)) = moved.threads.get_mut(index).map(|t| &mut t.place)
                else {
                    continue;
                };
                place.workgroup = if by_workgroup { workgroup } else { place.workgroup };
                place.subgroup = subgroup;
            }
            (test, moved)
        },
    );
    for name in ["vulkan", "vulkan-nochains", "vulkan-2024", "vulkan-2019", "vulkan-by-letter"] {
        let model = shipped(name);
        assert!(model.execution_semantics().has_scope_symmetry);
        let cases = (case_count(300), RngSeed::Fixed(7));
        check_cases(cases, &tests, |(test, moved)| {
            let strategy = ExplorationStrategy { lists_outcomes: false, ..SEARCH };
            let outcomes_of = |test: &Test| {
                let prediction = predict_with_strategy(test, &model, &UNLIMITED, strategy).unwrap();
                (prediction.race, prediction.can_meet_condition, prediction.can_miss_condition)
            };
            if outcomes_of(&test) == outcomes_of(&moved) {
                Ok(())
            } else {
                let text = litmus::print(&test) + &litmus::print(&moved);
                Err(TestCaseError::fail(format!(
                    "{:?}\n{:?}\n{text}",
                    outcomes_of(&test),
                    outcomes_of(&moved)
                )))
            }
        });
    }
}
