//! Random programs of several dispatches with access masks: the device runs the program that the model
//! judges, and no forbidden outcome occurs.

use litmus::{InstructionKind, Outcome, Race, Span, SyncPoint, SystemOperation, SystemSync, Test, ThreadId};
use plan::Device;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shaders::{Pipelines, Program};
use sim::{Fault, SimDevice};

use crate::common::{case_count, complete_prediction, disallowed_outcomes, run, stress};

const MASKS: [&str; 10] = [
    ".shader_write",
    ".shader_read",
    ".memory_write",
    ".memory_read",
    ".shader_read.shader_write",
    ".none",
    ".transfer_write.host_write",
    ".uniform_read",
    "",
    "",
];
const ACCESSES: [&str; 8] = [
    "st.sc0 x, V",
    "st.sc0 y, V",
    "ld.sc0 R, x",
    "ld.sc0 R, y",
    "st.sc0 z, V",
    "ld.sc0 R, z",
    "rmw.atom.dv.sc0.add R, x, 1",
    "ld.sc0 R, x",
];

/// A thread: API operations before its accesses, the accesses, and API operations after them.
type Thread = (Vec<(bool, usize)>, Vec<usize>, Vec<(bool, usize)>);

/// The threads of each phase, and pairs of threads that are unordered although their phases are ordered.
type PhasedProgram = (Vec<Vec<Thread>>, u8);

fn phased_program() -> impl Strategy<Value = PhasedProgram> {
    let half = || (any::<bool>(), 0..MASKS.len());
    let halves = move || proptest::collection::vec(half(), 0..2);
    let thread = move || (halves(), proptest::collection::vec(0..ACCESSES.len(), 1..3), halves());
    // Prefers choices that complete the intended order.
    let completing_thread = move || {
        let mask = |range: std::ops::Range<usize>| (range, Just(0)).prop_map(|(index, _)| index);
        (mask(0..8), proptest::collection::vec(0..ACCESSES.len(), 1..3), mask(0..8)).prop_map(
            |(to, accesses, from)| {
                let to = if to < 6 { [1, 3, 4][to / 2] } else { to };
                let from = if from < 6 { [0, 2, 4][from / 2] } else { from };
                (vec![(false, to)], accesses, vec![(true, from)])
            },
        )
    };
    let phase = proptest::collection::vec(prop_oneof![1 => thread(), 2 => completing_thread()], 1..3);
    (proptest::collection::vec(phase, 2..4), prop_oneof![2 => Just(0u8), 1 => any::<u8>()])
}

/// Returns the litmus text; `y` is another name of `x`.
fn litmus_text((phases, missing): &PhasedProgram) -> String {
    let (mut columns, mut phase_of, mut value) = (Vec::new(), Vec::new(), 0);
    for (phase, threads) in phases.iter().enumerate() {
        for (before, accesses, after) in threads {
            let half = |(available, mask): &(bool, usize)| {
                format!("{}device{}", if *available { "av" } else { "vis" }, MASKS[*mask])
            };
            let mut column = vec![format!("P{0}@sg 0, wg {0}, qf 0", columns.len())];
            column.extend(before.iter().map(half));
            for (register, access) in accesses.iter().enumerate() {
                value += 1;
                let access = ACCESSES[*access].replace('V', &value.to_string());
                column.push(access.replace('R', &format!("r{register}")));
            }
            column.extend(after.iter().map(half));
            columns.push(column);
            phase_of.push(phase);
        }
    }
    let mut sync = String::new();
    let pairs = (0..columns.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
    for (number, (from, to)) in pairs.filter(|(from, to)| phase_of[*from] < phase_of[*to]).enumerate() {
        if number >= 8 || missing >> number & 1 == 0 {
            sync += &format!("ssw {from} {to}; ");
        }
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let rows: Vec<String> = (0..rows)
        .map(|row| {
            let cells: Vec<&str> =
                columns.iter().map(|column| column.get(row).map_or("", String::as_str)).collect();
            format!("{} ;", cells.join(" | "))
        })
        .collect();
    format!(
        "VULKAN R {{ x = 0; y aliases x; z = 0; }}\n{{ {sync} }}\n{}\nexists (x == 77 \\/ z == 77)",
        rows.join("\n")
    )
}

/// Returns the test as recorded for the device. Every thread of a phase follows all threads of earlier
/// phases, and begins with the dependency before its phase.
fn recorded_test(test: &Test, program: &Program) -> Test {
    let mut recorded = test.clone();
    recorded.system_sync.clear();
    let mut earlier: Vec<ThreadId> = Vec::new();
    for phase in &program.phases {
        let own: Vec<ThreadId> = phase.kernels.iter().flat_map(|part| part.threads.clone()).collect();
        for thread in &own {
            let code = &mut recorded.threads[usize::from(thread.0)].instructions;
            code.retain(|instruction| !matches!(instruction.kind, InstructionKind::System(_)));
            let halves = [
                SystemOperation::Available(phase.dependency.available),
                SystemOperation::Visible(phase.dependency.visible),
            ];
            for half in halves.into_iter().rev() {
                let kind = InstructionKind::System(half);
                code.insert(0, litmus::Instruction { kind, span: Span::default() });
            }
            let point = |thread| SyncPoint { thread, instruction: None };
            recorded.system_sync.extend(earlier.iter().map(|before| SystemSync {
                from: point(*before),
                to: point(*thread),
                span: Span::default(),
            }));
        }
        earlier.extend(own);
    }
    recorded
}

#[test]
fn the_recorded_program_is_the_judged_one() {
    let wanted = case_count(25);
    let device = SimDevice::new(Fault::None);
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]));
    let (mut tried, mut ran, mut same, mut racy, mut total) = (0, 0, 0_u64, 0_u64, 0);
    let mut wrong = Vec::new();
    let config = stress(&device).kernel_config(device.capabilities());
    let strategy = phased_program();
    while ran < wanted && tried < wanted * 40 {
        tried += 1;
        let drawn = strategy.new_tree(&mut runner).unwrap().current();
        let text = litmus_text(&drawn);
        let test = litmus::parse(&text, "R").unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        let Ok(program) = shaders::compile_program(&test, &config, Pipelines::Merged) else { continue };
        let (Some(judged), Some(as_run)) =
            (complete_prediction(&test), complete_prediction(&recorded_test(&test, &program)))
        else {
            continue;
        };
        let allowed_outcomes = |of: &litmus::Prediction| -> Vec<Outcome> {
            of.outcomes.iter().filter(|(_, says)| says.allowed).map(|(outcome, _)| outcome.clone()).collect()
        };
        let (own, run_as) = (allowed_outcomes(&judged), allowed_outcomes(&as_run));
        // If the original is race-free, the recorded program must be, and must allow no additional outcome.
        if judged.race == Race::Free && (as_run.race != Race::Free || run_as.iter().any(|o| !own.contains(o)))
        {
            wrong.push(format!("the recorded program is weaker:\n{text}"));
        }
        let named = text.contains("device.");
        if named && drawn.1 == 0 {
            same += 1;
            racy += u64::from(judged.race != Race::Free);
            // If every pair of threads is ordered, both have the same outcomes.
            if (judged.race, &own) != (as_run.race, &run_as) {
                wrong.push(format!("the recorded program differs:\n{text}\n{own:?}\n{run_as:?}"));
            }
        }
        if judged.race == Race::Free {
            let Some(seen) = run(&device, &test, 1_000, tried) else { continue };
            let seen = seen.unwrap_or_else(|error| panic!("{text}\n{error}"));
            ran += 1;
            total += seen.accounted_instances();
            let bad = disallowed_outcomes(&test, &judged, &seen);
            if !bad.is_empty() {
                wrong.push(format!("{text}\n{bad:#?}"));
            }
        }
    }
    println!("{ran} race-free of {tried} programs, {total} instances; {same} the same, {racy} of them racy");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    assert!(
        ran >= wanted && same >= wanted && racy * 5 >= wanted && (same - racy) * 5 >= wanted,
        "{ran} {tried} {same} {racy}"
    );
}
