//! Historic compiler bugs, inserted into correct code; the explorer detects each.

use isa::opcode::{CacheInstruction, Opcode, WaitCounter};
use isa::text::MachineInstruction;
use isa::{FactTable, MachineProgram, MachineVerdict, Profile, explore};

use crate::sample::{parsed, question, samples};

/// Explores a merged sample after a change of its text; the original is correct.
fn explore_broken(family: &str, name: &str, change: impl Fn(&mut MachineProgram)) -> MachineVerdict {
    let facts = FactTable::shipped().unwrap();
    let sample = samples(family).into_iter().find(|sample| sample.name == format!("{name}@merged")).unwrap();
    let mut texts = parsed(&sample);
    let before = explore(&question(family, &sample, &texts), Profile::Documented, &facts);
    assert!(matches!(before, MachineVerdict::Unreachable(_)), "{family} {name}: {before:?}");
    let untouched = texts.clone();
    for text in &mut texts {
        change(text);
    }
    assert_ne!(texts, untouched, "{family} {name}: nothing was changed");
    explore(&question(family, &sample, &texts), Profile::Documented, &facts)
}

#[track_caller]
fn assert_detected(verdict: MachineVerdict) {
    assert!(matches!(verdict, MachineVerdict::Reachable(_)), "{verdict:?}");
}

fn remove_instructions(text: &mut MachineProgram, predicate: impl Fn(&MachineInstruction) -> bool) {
    for instruction in &mut text.instructions {
        if predicate(instruction) {
            instruction.opcode = Opcode::NoEffect;
            instruction.modifiers = Default::default();
        }
    }
}

fn is_store_wait(instruction: &MachineInstruction) -> bool {
    matches!(&instruction.opcode, Opcode::Wait(counters) if counters.contains(&WaitCounter::Store))
}

/// LLVM #155370, fixed by #160501: a barrier that waits for local visibility only. A later release by another
/// wave does not cover the stores before the barrier.
#[test]
fn a_barrier_that_waits_for_local_visibility_only() {
    for family in ["navi21", "navi31", "gfx1201"] {
        assert_detected(explore_broken(family, "ISA2+cbar-rel-acq.atomic", |text| {
            let barrier = text
                .instructions
                .iter()
                .position(|i| matches!(i.opcode, Opcode::Barrier | Opcode::BarrierSignal))
                .unwrap();
            let before = text.instructions[..barrier].iter().rposition(is_store_wait).unwrap();
            text.instructions[before].opcode = Opcode::NoEffect;
        }));
    }
}

/// LLPC #94: a fence whose wrong scope lost the `s_barrier`.
#[test]
fn a_control_barrier_without_its_barrier() {
    for family in ["polaris10", "vega10", "navi21", "navi31"] {
        for name in ["barrier/MP+cbar", "classes/MP+cbar.sc1"] {
            assert_detected(explore_broken(family, name, |text| {
                remove_instructions(text, |i| i.opcode == Opcode::Barrier)
            }));
        }
    }
    for name in ["barrier/MP+cbar", "classes/MP+cbar.sc1"] {
        assert_detected(explore_broken("gfx1201", name, |text| {
            remove_instructions(text, |i| matches!(i.opcode, Opcode::BarrierSignal | Opcode::BarrierWait));
        }));
    }
}

/// LLPC #144: memory barriers compiled to waits only; the accesses lose their cache bypass bits.
#[test]
fn waits_without_coherence_bits() {
    for family in ["polaris10", "vega10", "navi21", "navi31", "gfx1201"] {
        for name in ["mp/MP+fence-fence", "storage/MP+rel-acq.sc2-flag", "storage/MP+rel-acq.sc2-payload"] {
            assert_detected(explore_broken(family, name, |text| {
                for instruction in &mut text.instructions {
                    instruction.modifiers.flags.retain(|flag| flag != "glc" && flag != "dlc");
                    instruction.modifiers.values.retain(|(key, _)| key != "scope");
                }
            }));
        }
    }
}

/// AMD 5700 XT (webgpu-litmus #35, VK-GL-CTS #295): acquire and release compiled as relaxed.
#[test]
fn ordered_atomics_as_relaxed_ones() {
    for family in ["vega10", "navi21", "navi31", "gfx1201"] {
        assert_detected(explore_broken(family, "mp/MP+rel-acq", |text| {
            // The waits of the flag: all waits before the last access of each role.
            remove_instructions(text, is_store_wait);
            for instruction in &mut text.instructions {
                if instruction.opcode == Opcode::Waitcnt && family == "vega10" {
                    // On GFX9 one counter covers loads and stores; waits for results may remain.
                    instruction.modifiers.values.retain(|(name, _)| name != "vmcnt");
                }
            }
            if family == "vega10" {
                let first_result =
                    text.instructions.iter().rposition(|i| i.mnemonic.starts_with("buffer_load")).unwrap()
                        + 1;
                text.instructions[first_result].opcode = Opcode::Waitcnt;
                text.instructions[first_result].operands.clear();
                text.instructions[first_result].modifiers.values = vec![("vmcnt".to_owned(), "0".to_owned())];
                let lost = text.instructions[first_result].text.clone();
                assert!(lost.starts_with("v_lshlrev_b32"), "{lost}");
            }
        }));
    }
}

/// wgpu #4591: workgroup memory used without a barrier after its initialization.
#[test]
fn initialization_without_a_barrier() {
    for family in ["polaris10", "vega10", "navi21", "navi31"] {
        assert_detected(explore_broken(family, "classes/MP+rel-acq.sc1-flag", |text| {
            let first = text.instructions.iter().position(|i| i.opcode == Opcode::Barrier);
            if let Some(first) = first {
                text.instructions[first].opcode = Opcode::NoEffect;
            }
        }));
    }
}

/// LLVM #81450: if GL0 is invalidated before GL1, L0 may be refilled with stale lines of GL1. The same
/// happens if the invalidation does not wait for the flag, because other waves load meanwhile.
#[test]
fn caches_dropped_in_the_wrong_order() {
    // LLVM's acquire: a load that bypasses the caches, a wait, invalidations, and a plain load.
    let explore_with_order = |order: [CacheInstruction; 2], waits_first: bool| {
        let facts = FactTable::shipped().unwrap();
        let sample = samples("navi21").into_iter().find(|s| s.name == "mp/MP+rel-acq@merged").unwrap();
        let mut texts = parsed(&sample);
        let text = &mut texts[0];
        let is_load = |i: &MachineInstruction| i.mnemonic.starts_with("buffer_load");
        let payload = text.instructions.iter().rposition(is_load).unwrap();
        let flag = text.instructions[..payload].iter().rposition(is_load).unwrap();
        let wait = text.instructions[..payload].iter().rposition(|i| i.opcode == Opcode::Waitcnt).unwrap();
        assert!(flag < wait);
        text.instructions[payload].modifiers.flags.retain(|flag| flag != "glc" && flag != "dlc");
        let first = if waits_first { payload } else { wait };
        for (offset, cache) in (0..).zip(order) {
            let mut invalidation = text.instructions[payload].clone();
            invalidation.opcode = Opcode::Cache(cache);
            invalidation.operands.clear();
            invalidation.modifiers = Default::default();
            text.instructions.insert(first + offset, invalidation);
            for (_, label) in &mut text.labels {
                if *label >= first + offset {
                    *label += 1;
                }
            }
        }
        explore(&question("navi21", &sample, &texts), Profile::Documented, &facts)
    };
    let correct_order = [CacheInstruction::InvalidateArray, CacheInstruction::InvalidateVector];
    let verdict = explore_with_order(correct_order, true);
    assert!(matches!(verdict, MachineVerdict::Unreachable(_)), "{verdict:?}");
    assert_detected(explore_with_order(correct_order, false));
    assert_detected(explore_with_order(
        [CacheInstruction::InvalidateVector, CacheInstruction::InvalidateArray],
        true,
    ));
    assert_detected(explore_with_order(
        [CacheInstruction::InvalidateVector, CacheInstruction::InvalidateVector],
        true,
    ));
    assert_detected(explore_with_order(
        [CacheInstruction::InvalidateArray, CacheInstruction::InvalidateArray],
        true,
    ));
}
