//! Compares the explorer with a naive machine: equal outcomes on emitted code and on random programs.

use std::cell::Cell;
use std::collections::BTreeSet;

use isa::naive::{self, NaiveSearchError};
use isa::question::{
    DescriptorTarget, DispatchBarrier, MachineKernel, MemorySpace, MemoryWord, ObservedWord, Resource,
    Workgroup,
};
use isa::{FactTable, MachineQuestion, Profile, parse};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::sample::{FAMILIES, parsed, question, samples};

/// The largest number of states per placement for the oracle.
const LIMIT: usize = 5_000;

/// Tests with a small state space: two waves or slightly more, of several shapes and forms.
const SMALL: [&str; 16] = [
    "mp/MP+rel-acq@merged",
    "mp/MP+rel-acq@split.restrict",
    "mp/MP+rlx-rlx@merged",
    "mp/MP+rlx-rlx@split.restrict",
    "mp/MP+rel-acq.wg@merged",
    "sb/SB+rlx-rlx@merged",
    "lb/LB+rlx-rlx@merged",
    "s/S+rel-acq@merged",
    "coherence/CoRR+rlx@merged",
    "coherence/CoWR+rlx@merged",
    "barrier/MP+cbar@merged",
    "barrier/WAW+cbar@merged",
    "classes/MP+cbar.sc1@merged",
    "rmw/RMW+addadd-addadd@merged",
    "guard/MP+rel-acq.guard@merged",
    "avvis/MP+rel-acq.semav-semvis@merged",
];

#[test]
fn emitted_code_has_the_same_outcomes() {
    let facts = FactTable::shipped().unwrap();
    // A soak compares each sample under both profiles, other runs under one.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for family in FAMILIES {
        let mut compared = 0;
        let samples = samples(family);
        let small = samples.iter().filter(|sample| SMALL.contains(&sample.name.as_str()));
        for (number, sample) in small.enumerate() {
            let question = question(family, sample, &parsed(sample));
            let profiles = [Profile::Documented, Profile::Paranoid];
            for profile in profiles.into_iter().skip(number % share).step_by(share) {
                match naive::naive_outcomes(&question, profile, &facts, LIMIT) {
                    Ok(slow) => {
                        let fast = isa::explore::reachable_outcomes(&question, profile, &facts).unwrap();
                        assert_eq!(fast, slow, "{family} {} {profile}", sample.name);
                        compared += 1;
                    }
                    Err(why) => {
                        assert_eq!(why, NaiveSearchError::TooManyStates(LIMIT), "{family} {}", sample.name)
                    }
                }
            }
        }
        println!("{family}: {compared} of {} compared", 2 * SMALL.len() / share);
        assert!(compared > SMALL.len() / share, "{family}: {compared} compared");
    }
}

/// A step of a wave in a random program. Wide accesses have four words from the cell on.
#[derive(Clone, Copy, Debug)]
enum RandomStep {
    Load { cell: u32, bits: usize },
    Store { cell: u32, bits: usize },
    WideLoad { cell: u32, bits: usize },
    WideStore { cell: u32, bits: usize },
    Add { cell: u32 },
    ScalarLoad { cell: u32, bits: usize },
    SharedLoad,
    SharedStore,
    WaitLoads,
    WaitStores,
    WaitLds,
    Barrier,
    Invalidate { which: usize },
}

struct FamilySyntax {
    family: &'static str,
    word: &'static str,
    wide: &'static str,
    no_offset: &'static str,
    bits: &'static [&'static str],
    returning: &'static str,
    wave_number: &'static str,
    waits: [&'static str; 3],
    barrier: &'static [&'static str],
    invalidates: &'static [&'static str],
    shared: [&'static str; 2],
}

const FAMILY_SYNTAX: [FamilySyntax; 4] = [
    FamilySyntax {
        family: "vega10",
        word: "dword",
        wide: "dwordx4",
        no_offset: "0",
        bits: &["", " glc"],
        returning: " glc",
        wave_number: "s3, 0x60006",
        waits: ["s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"],
        barrier: &["s_barrier"],
        invalidates: &["buffer_wbinvl1_vol", "s_dcache_inv"],
        shared: ["ds_read_b32", "ds_write_b32"],
    },
    FamilySyntax {
        family: "navi21",
        word: "dword",
        wide: "dwordx4",
        no_offset: "0",
        bits: &["", " glc", " glc dlc", " dlc"],
        returning: " glc",
        wave_number: "s3, 0x50014",
        waits: ["s_waitcnt vmcnt(0)", "s_waitcnt_vscnt null, 0x0", "s_waitcnt lgkmcnt(0)"],
        barrier: &["s_barrier"],
        invalidates: &["buffer_gl0_inv", "buffer_gl1_inv", "s_dcache_inv"],
        shared: ["ds_read_b32", "ds_write_b32"],
    },
    FamilySyntax {
        family: "navi31",
        word: "b32",
        wide: "b128",
        no_offset: "0",
        bits: &["", " glc"],
        returning: " glc",
        wave_number: "s3, 0x50014",
        waits: ["s_waitcnt vmcnt(0)", "s_waitcnt_vscnt null, 0x0", "s_waitcnt lgkmcnt(0)"],
        barrier: &["s_barrier"],
        invalidates: &["buffer_gl0_inv", "buffer_gl1_inv"],
        shared: ["ds_load_b32", "ds_store_b32"],
    },
    FamilySyntax {
        family: "gfx1201",
        word: "b32",
        wide: "b128",
        no_offset: "null",
        bits: &["", " scope:SCOPE_SE", " scope:SCOPE_DEV"],
        returning: " th:TH_ATOMIC_RETURN",
        wave_number: "ttmp8, 0x50019",
        waits: ["s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "s_wait_dscnt 0x0"],
        barrier: &["s_barrier_signal -1", "s_barrier_wait -1"],
        invalidates: &["global_inv scope:SCOPE_SE", "global_inv scope:SCOPE_DEV"],
        shared: ["ds_load_b32", "ds_store_b32"],
    },
];

const LOCATIONS: MemorySpace = MemorySpace(0);
const RESULTS: MemorySpace = MemorySpace(1);

/// Returns the text of a workgroup: each wave's steps, then its loaded values as one word.
fn kernel_text(syntax: &FamilySyntax, waves: &[Vec<RandomStep>], first: usize) -> String {
    let FamilySyntax { word, wide, no_offset, .. } = *syntax;
    let mut lines = vec!["s_mov_b32 s0, s2".to_owned(), "s_movk_i32 s1, 0x8000".to_owned()];
    lines.push(format!("s_load_{wide} s[4:7], s[0:1], 0x0"));
    lines.push(format!("s_load_{wide} s[12:15], s[0:1], 0x10"));
    let scalar_wait = if syntax.family == "gfx1201" { "s_wait_kmcnt 0x0" } else { syntax.waits[2] };
    lines.push(scalar_wait.to_owned());
    lines.push("v_mov_b32_e32 v30, 0".to_owned());
    if waves.len() > 1 {
        lines.push(format!("s_bfe_u32 s8, {}", syntax.wave_number));
    }
    for (wave, steps) in waves.iter().enumerate() {
        if wave > 0 {
            lines.push(format!("BB{wave}:"));
        }
        if wave + 1 < waves.len() {
            lines.push(format!("s_cmp_eq_u32 s8, {wave}"));
            lines.push(format!("s_cbranch_scc0 BB{}", wave + 1));
        }
        let mut results = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let value = 1 + 3 * (first + wave) + number;
            let bits = |index: usize| syntax.bits[index % syntax.bits.len()];
            let register = 10 + number;
            match *step {
                RandomStep::Load { cell, bits: index } => lines.push(format!(
                    "buffer_load_{word} v{register}, off, s[4:7], {no_offset} offset:{}{}",
                    256 * cell,
                    bits(index)
                )),
                RandomStep::Store { cell, bits: index } => {
                    lines.push(format!("v_mov_b32_e32 v1, {value}"));
                    lines.push(format!(
                        "buffer_store_{word} v1, off, s[4:7], {no_offset} offset:{}{}",
                        256 * cell,
                        // `dlc` on a store may hang.
                        bits(index).replace(" dlc", "")
                    ));
                }
                RandomStep::WideLoad { cell, bits: index } => lines.push(format!(
                    "buffer_load_{wide} v[{}:{}], off, s[4:7], {no_offset} offset:{}{}",
                    40 + 4 * number,
                    43 + 4 * number,
                    256 * cell,
                    bits(index)
                )),
                RandomStep::WideStore { cell, bits: index } => {
                    lines.extend((4..8).map(|word| format!("v_mov_b32_e32 v{word}, {}", value + word - 4)));
                    lines.push(format!(
                        "buffer_store_{wide} v[4:7], off, s[4:7], {no_offset} offset:{}{}",
                        256 * cell,
                        bits(index).replace(" dlc", "")
                    ));
                }
                RandomStep::Add { cell } => {
                    lines.push(format!("v_mov_b32_e32 v{register}, {value}"));
                    let ty = if word == "b32" { "_u32" } else { "" };
                    lines.push(format!(
                        "buffer_atomic_add{ty} v{register}, off, s[4:7], {no_offset} offset:{}{}",
                        256 * cell,
                        syntax.returning
                    ));
                }
                RandomStep::ScalarLoad { cell, bits: index } => lines.push(format!(
                    "s_buffer_load_{word} s{}, s[4:7], {:#x}{}",
                    20 + number,
                    256 * cell,
                    bits(index)
                )),
                RandomStep::SharedLoad => lines.push(format!("{} v{register}, v30", syntax.shared[0])),
                RandomStep::SharedStore => {
                    lines.push(format!("v_mov_b32_e32 v1, {value}"));
                    lines.push(format!("{} v30, v1", syntax.shared[1]));
                }
                RandomStep::WaitLoads => lines.push(syntax.waits[0].to_owned()),
                RandomStep::WaitStores => lines.push(syntax.waits[1].to_owned()),
                RandomStep::WaitLds => lines.push(syntax.waits[2].to_owned()),
                RandomStep::Barrier => lines.extend(syntax.barrier.iter().map(|line| (*line).to_owned())),
                RandomStep::Invalidate { which } => {
                    lines.push(syntax.invalidates[which % syntax.invalidates.len()].to_owned());
                }
            }
            match step {
                RandomStep::Load { .. } | RandomStep::Add { .. } | RandomStep::SharedLoad => {
                    results.push(format!("v{register}"))
                }
                // Two words of one cell, and one word of another.
                RandomStep::WideLoad { .. } => {
                    results.extend([40, 41, 43].map(|first| format!("v{}", first + 4 * number)));
                }
                RandomStep::ScalarLoad { .. } => results.push(format!("s{}", 20 + number)),
                _ => {}
            }
        }
        if !results.is_empty() {
            lines.push(syntax.waits[0].to_owned());
            lines.push(syntax.waits[2].to_owned());
            lines.push(scalar_wait.to_owned());
            lines.push("v_mov_b32_e32 v20, 0".to_owned());
            for result in results {
                lines.push(format!("v_mov_b32_e32 v21, {result}"));
                lines.push("v_lshl_add_u32 v20, v20, 6, v21".to_owned());
            }
            lines.push(format!(
                "buffer_store_{word} v20, off, s[12:15], {no_offset} offset:{}",
                8 * (first + wave)
            ));
        }
        lines.push("s_endpgm".to_owned());
    }
    lines.join("\n")
}

/// Returns a question in which each workgroup runs another kernel.
///
/// With `visible`, the last one is in a later dispatch.
fn build_question(
    syntax: &FamilySyntax,
    workgroups: &[Vec<Vec<RandomStep>>],
    visible: Option<&'static str>,
) -> MachineQuestion {
    let mut kernels = Vec::new();
    let mut placed_workgroups = Vec::new();
    let mut first = 0;
    for (number, waves) in workgroups.iter().enumerate() {
        kernels.push(MachineKernel {
            program: parse(&kernel_text(syntax, waves, first)).unwrap(),
            resources: Resource::lay_out(
                &[DescriptorTarget::Buffer(LOCATIONS), DescriptorTarget::Buffer(RESULTS)],
                vendor::radv().descriptors.unwrap(),
            ),
            address_space: None,
        });
        placed_workgroups.push(Workgroup {
            kernel: number,
            dispatch: usize::from(visible.is_some() && number + 1 == workgroups.len()),
            id: 0,
            wave_size: 64,
            waves: vec![vec![0]; waves.len()],
        });
        first += waves.len();
    }
    let word = |space, offset| ObservedWord { word: MemoryWord { space, offset, bytes: 4 }, required: None };
    let results = (0..first).map(|wave| word(RESULTS, 8 * wave as u32));
    MachineQuestion {
        family: syntax.family.parse().unwrap(),
        kernels,
        workgroups: placed_workgroups,
        barriers: visible
            .map(|word| DispatchBarrier { visible: vec![word.to_owned()] })
            .into_iter()
            .collect(),
        initial_memory: Vec::new(),
        observed: results.chain([0, 12, 256].map(|offset| word(LOCATIONS, offset))).collect(),
        allowed_outcomes: BTreeSet::new(),
    }
}

fn step_strategy() -> impl Strategy<Value = RandomStep> {
    let (cell, bits) = (0_u32..2, 0_usize..4);
    prop_oneof![
        5 => (cell.clone(), bits.clone()).prop_map(|(cell, bits)| RandomStep::Load { cell, bits }),
        5 => (cell.clone(), bits.clone()).prop_map(|(cell, bits)| RandomStep::Store { cell, bits }),
        1 => (cell.clone(), bits.clone()).prop_map(|(cell, bits)| RandomStep::WideLoad { cell, bits }),
        1 => (cell.clone(), bits.clone()).prop_map(|(cell, bits)| RandomStep::WideStore { cell, bits }),
        1 => cell.clone().prop_map(|cell| RandomStep::Add { cell }),
        1 => (cell, bits).prop_map(|(cell, bits)| RandomStep::ScalarLoad { cell, bits }),
        1 => Just(RandomStep::SharedLoad),
        1 => Just(RandomStep::SharedStore),
        1 => Just(RandomStep::WaitLoads),
        2 => Just(RandomStep::WaitStores),
        1 => Just(RandomStep::WaitLds),
        2 => Just(RandomStep::Barrier),
        1 => (0_usize..3).prop_map(|which| RandomStep::Invalidate { which }),
    ]
}

/// The number of cases; `VK_LITMUS_SOAK_CASES` overrides it.
fn case_count(default: u32) -> u32 {
    std::env::var("VK_LITMUS_SOAK_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// The input of a case: family, true for the paranoid profile, workgroups, and the barrier before the last
/// workgroup.
type RandomCase = (usize, bool, Vec<Vec<Vec<RandomStep>>>, Option<&'static str>);

/// Compares the two machines on random programs.
///
/// Returns the number of programs that were compared, that had several outcomes, and that were too large.
fn compare_machines(count: u32, inputs: &impl Strategy<Value = RandomCase>) -> [u32; 3] {
    let facts = FactTable::shipped().unwrap();
    let config = Config { cases: case_count(count), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[10; 32]));
    let [compared, several, too_many] = [const { Cell::new(0_u32) }; 3];
    let answer = runner.run(inputs, |(family, paranoid, workgroups, visible)| {
        let profile = if paranoid { Profile::Paranoid } else { Profile::Documented };
        let question = build_question(&FAMILY_SYNTAX[family], &workgroups, visible);
        match naive::naive_outcomes(&question, profile, &facts, LIMIT) {
            Ok(slow) => {
                let fast = isa::explore::reachable_outcomes(&question, profile, &facts);
                prop_assert_eq!(fast, Some(slow.clone()), "{}", FAMILY_SYNTAX[family].family);
                compared.set(compared.get() + 1);
                several.set(several.get() + u32::from(slow.len() > 1));
            }
            Err(NaiveSearchError::TooManyStates(_)) => too_many.set(too_many.get() + 1),
            Err(NaiveSearchError::NotExecuted) => {
                let verdict = isa::explore(&question, profile, &facts);
                // A register is read after a wait for another counter than that of its load.
                prop_assert!(matches!(verdict, isa::MachineVerdict::Hazard(_)), "{verdict:?}");
            }
        }
        Ok(())
    });
    let [compared, several, too_many] = [compared, several, too_many].map(Cell::into_inner);
    println!("{compared} compared, {several} of them with several outcomes; {too_many} with too many states");
    answer.unwrap();
    [compared, several, too_many]
}

#[test]
fn random_programs_have_the_same_outcomes() {
    let wave = || proptest::collection::vec(step_strategy(), 1..=4);
    // One workgroup each, two waves of one workgroup, or three waves.
    let shapes = prop_oneof![
        3 => (wave(), wave()).prop_map(|(a, b)| vec![vec![a], vec![b]]),
        3 => (wave(), wave()).prop_map(|(a, b)| vec![vec![a, b]]),
        1 => (proptest::collection::vec(step_strategy(), 1..=2), proptest::collection::vec(step_strategy(), 1..=2), wave())
            .prop_map(|(a, b, c)| vec![vec![a, b], vec![c]]),
        1 => proptest::collection::vec(proptest::collection::vec(step_strategy(), 1..=2), 3).prop_map(|waves| vec![waves]),
    ];
    let [compared, several, too_many] =
        compare_machines(16, &(0..FAMILY_SYNTAX.len(), any::<bool>(), shapes, Just(None)));
    assert!(compared > 4 * too_many && several > compared / 4, "{compared} {several} {too_many}");
}

/// Two dispatches with a barrier that invalidates all caches, some or none.
#[test]
fn random_dispatches_have_the_same_outcomes() {
    let bits = || prop_oneof![3 => Just(0), 1 => 0_usize..4];
    let store = prop_oneof![
        3 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::Store { cell, bits }),
        1 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::WideStore { cell, bits }),
        1 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::Load { cell, bits }),
    ];
    let load = prop_oneof![
        3 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::Load { cell, bits }),
        2 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::ScalarLoad { cell, bits }),
        1 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::WideLoad { cell, bits }),
        1 => (0_u32..2, bits()).prop_map(|(cell, bits)| RandomStep::Store { cell, bits }),
        1 => (0_usize..3).prop_map(|which| RandomStep::Invalidate { which }),
    ];
    let waves = (proptest::collection::vec(store, 1..=2), proptest::collection::vec(load, 1..=2));
    let workgroups = waves.prop_map(|(a, b)| vec![vec![a], vec![b]]);
    let words = vec!["shader_read", "transfer_read", "shader_write"];
    let visible = proptest::sample::select(words).prop_map(Some);
    let [compared, several, too_many] =
        compare_machines(50, &(0..FAMILY_SYNTAX.len(), any::<bool>(), workgroups, visible));
    assert!(compared > 4 * too_many && several > compared / 6, "{compared} {several} {too_many}");
}
