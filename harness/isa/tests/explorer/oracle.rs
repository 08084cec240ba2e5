//! Compares the explorer with a naive machine: equal outcomes on emitted code and on random programs.

use std::collections::BTreeSet;

use isa::naive::{self, NaiveSearchError};
use isa::question::{
    DescriptorTarget, DispatchBarrier, MachineKernel, MemorySpace, MemoryWord, ObservedWord, Resource,
    Workgroup,
};
use isa::{FactTable, MachineQuestion, Profile, parse};

use crate::derivation::{Derivation, Random};
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

/// The chips that `random.grammar` has rules for.
const RANDOM_FAMILIES: [&str; 4] = ["vega10", "navi21", "navi31", "gfx1201"];

const LOCATIONS: MemorySpace = MemorySpace(0);
const RESULTS: MemorySpace = MemorySpace(1);

/// Returns the text of a workgroup: each wave's steps, by the rule that derives them, then its loaded values as one word.
fn kernel_text(derivation: &mut Derivation, family: &str, waves: &[&str], first: usize) -> String {
    let mut derive = |rule: &str| derivation.expand_kernel(&format!("{rule} {family}"));
    let mut text = derive("prologue");
    let (word, no_offset) = (derive(&format!("word-{family}")), derive(&format!("none-{family}")));
    if waves.len() > 1 {
        text += &format!("s_bfe_u32 s8, {}\n", derive(&format!("wave-number-{family}")));
    }
    for (wave, rule) in waves.iter().enumerate() {
        if wave > 0 {
            text += &format!("BB{wave}:\n");
        }
        if wave + 1 < waves.len() {
            text += &format!("s_cmp_eq_u32 s8, {wave}\ns_cbranch_scc0 BB{}\n", wave + 1);
        }
        let steps = derive(rule);
        text += &steps;
        if steps.contains("v21") {
            let offset = 8 * (first + wave);
            text += &format!("buffer_store_{word} v20, off, s[12:15], {no_offset} offset:{offset}\n");
        }
        text += "s_endpgm\n";
    }
    text
}

/// Returns a question in which each workgroup runs another kernel.
///
/// With `visible`, the last one is in a later dispatch.
fn build_question(
    derivation: &mut Derivation,
    family: &str,
    workgroups: &[&[&str]],
    visible: Option<&str>,
) -> MachineQuestion {
    let mut kernels = Vec::new();
    let mut placed_workgroups = Vec::new();
    let mut first = 0;
    for (number, waves) in workgroups.iter().enumerate() {
        kernels.push(MachineKernel {
            program: parse(&kernel_text(derivation, family, waves, first)).unwrap(),
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
        family: family.parse().unwrap(),
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

/// The number of cases; `VK_LITMUS_SOAK_CASES` overrides it.
fn case_count(default: u32) -> u32 {
    std::env::var("VK_LITMUS_SOAK_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// A choice of a shape: its workgroups, with the rule of each wave, and the barrier before the last workgroup.
type RandomShape = (&'static [&'static [&'static str]], Option<&'static str>);

/// Compares the two machines on random programs of shapes.
///
/// Returns the number of programs that were compared, that had several outcomes, and that were too large.
fn compare_machines(count: u32, shapes: &[RandomShape]) -> [u32; 3] {
    let facts = FactTable::shipped().unwrap();
    let [mut compared, mut several, mut too_many] = [0; 3];
    for case in 0..case_count(count) {
        let mut random = Random::new(u64::from(case) + 1);
        let family = RANDOM_FAMILIES[random.below(RANDOM_FAMILIES.len())];
        let profile = [Profile::Documented, Profile::Paranoid][random.below(2)];
        let (workgroups, visible) = shapes[random.below(shapes.len())];
        let mut derivation = Derivation::new(include_str!("random.grammar"), random);
        let question = build_question(&mut derivation, family, workgroups, visible);
        match naive::naive_outcomes(&question, profile, &facts, LIMIT) {
            Ok(slow) => {
                let fast = isa::explore::reachable_outcomes(&question, profile, &facts);
                assert_eq!(fast, Some(slow.clone()), "{family}, case {case}");
                compared += 1;
                several += u32::from(slow.len() > 1);
            }
            Err(NaiveSearchError::TooManyStates(_)) => too_many += 1,
            Err(NaiveSearchError::NotExecuted) => {
                let verdict = isa::explore(&question, profile, &facts);
                // A register is read after a wait for another counter than that of its load.
                assert!(matches!(verdict, isa::MachineVerdict::Hazard(_)), "case {case}: {verdict:?}");
            }
        }
    }
    println!("{compared} compared, {several} of them with several outcomes; {too_many} with too many states");
    [compared, several, too_many]
}

#[test]
fn random_programs_have_the_same_outcomes() {
    // One workgroup each, two waves of one workgroup, or three waves.
    const TWO_WORKGROUPS: RandomShape = (&[&["wave"], &["wave"]], None);
    const TWO_WAVES: RandomShape = (&[&["wave", "wave"]], None);
    const THREE_WAVES: [RandomShape; 2] =
        [(&[&["short", "short"], &["wave"]], None), (&[&["short", "short", "short"]], None)];
    let shapes = [&[TWO_WORKGROUPS; 3][..], &[TWO_WAVES; 3], &THREE_WAVES].concat();
    let [compared, several, too_many] = compare_machines(16, &shapes);
    assert!(compared > 4 * too_many && several > compared / 4, "{compared} {several} {too_many}");
}

/// Two dispatches with a barrier that invalidates all caches, some or none.
#[test]
fn random_dispatches_have_the_same_outcomes() {
    const DISPATCHES: &[&[&str]] = &[&["writer"], &["reader"]];
    let shapes = ["shader_read", "transfer_read", "shader_write"].map(|word| (DISPATCHES, Some(word)));
    let [compared, several, too_many] = compare_machines(50, &shapes);
    assert!(compared > 4 * too_many && several > compared / 6, "{compared} {several} {too_many}");
}
