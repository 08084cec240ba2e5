//! Executes kernels in an interpreter and checks the contract of `shaders::contract`. Every thread of every
//! instance runs once in the slot of the formulas, executes the instructions of the test, and reports its
//! registers.
//!
//! Long because one dispatch is checked against the entire contract.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{common, machine, random};

use std::collections::BTreeMap;
use std::path::Path;

use common::{LAVAPIPE, NARROW, local_size};
use litmus::*;
use machine::{BufferAccess, Invocation, Program, State};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use rspirv::spirv::Op;
use shaders::stress::AccessPattern;
use shaders::variant::{CarrierStage, Variant, WorkgroupShape};
use shaders::{Binding, CompiledKernel, KernelConfig, Parameters, ResultSlot, StressParameters};

const POISON: u32 = 0xdead_beef;
const DONE: u32 = 0x600d;
const SALT: u32 = 0x7b12_3456;

#[derive(Clone, Copy)]
struct RendezvousParameters {
    spin: u32,
    interval: u32,
    hold: u32,
}

const NO_RENDEZVOUS: RendezvousParameters = RendezvousParameters { spin: 0, interval: 1, hold: 2 };

/// Returns parameters of a small dispatch: pairing, multipliers and rounds in which every term of the
/// formulas matters.
fn parameters(kernel: &CompiledKernel, waiting: RendezvousParameters) -> Parameters {
    let co_prime = |n: u32| (2..).find(|m| gcd(*m, n) == 1).unwrap();
    let groups = 6;
    Parameters {
        groups,
        rounds: 3,
        spin: waiting.spin,
        pairing: 2,
        group_multiplier: co_prime(groups),
        group_offset: if kernel.is_parallel { 5 } else { 4 },
        lane_multiplier: co_prime(kernel.lanes),
        lane_offset: 3,
        stride: kernel.storages * 5 + 2,
        spacing: 5,
        poison: POISON,
        done: DONE,
        interval: waiting.interval,
        hold: waiting.hold,
        turn: 5,
        party: (kernel.roles.classes.len() as u32).min(3),
    }
}

/// Returns the number of workgroups of a group: one for each class, or one that runs them all.
fn workgroups_per_group(kernel: &CompiledKernel) -> u32 {
    if kernel.is_parallel { 1 } else { kernel.roles.classes.len() as u32 }
}

/// Returns memory stress in which every term of the formulas matters; none if the kernel has none.
fn stress(kernel: &CompiledKernel, parameters: &Parameters, seed: u32) -> StressParameters {
    if !kernel.is_stressed() {
        return StressParameters::default();
    }
    let workgroups = 5;
    let all = parameters.groups * workgroups_per_group(kernel) + workgroups;
    let patterns = [
        AccessPattern::StoreStore,
        AccessPattern::StoreLoad,
        AccessPattern::LoadStore,
        AccessPattern::LoadLoad,
    ];
    StressParameters {
        workgroups,
        workgroup_multiplier: (2..).find(|m| gcd(*m, all) == 1).unwrap(),
        workgroup_offset: 3,
        iterations: 2,
        before: 3,
        pattern: patterns[seed as usize % 4].to_word(),
        lines: 3,
        chunk: 2,
        step: 14,
        base: 17,
        words: SCRATCH_WORDS,
    }
}

const SCRATCH_WORDS: u32 = 35;

/// Work that a faulty driver executes in addition to the dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SurplusWork {
    /// Workgroups after the last one.
    workgroups: u32,
    /// All workgroups a second time, with y = 1.
    second_row: bool,
    /// Invocations after the last one of each workgroup.
    locals: u32,
    /// `<` is executed as `<=`.
    off_by_one: bool,
}

impl SurplusWork {
    const NONE: SurplusWork = SurplusWork { workgroups: 0, second_row: false, locals: 0, off_by_one: false };

    /// Returns the invocations of a dispatch of this many workgroups, workgroup by workgroup.
    fn invocations(
        self,
        kernel: &CompiledKernel,
        program: &Program,
        workgroups: u32,
        subgroup_size: u32,
    ) -> Vec<Invocation> {
        let workgroups = workgroups + self.workgroups;
        if self.locals == 0 && !self.second_row {
            return machine::stages::invocations(kernel, program, workgroups, subgroup_size);
        }
        let rows = 0..1 + u32::from(self.second_row);
        let numbers = rows.flat_map(|row| (0..workgroups).map(move |workgroup| (row, workgroup)));
        let locals = 0..kernel.workgroup_size + self.locals;
        let each = numbers.flat_map(|number| locals.clone().map(move |local| (number, local)));
        each.map(|((row, workgroup), local)| {
            let mut invocation = program.invocation(workgroup, local, subgroup_size);
            invocation.row = row;
            invocation
        })
        .collect()
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// An executed dispatch: its invocations with their accesses, and the final memory.
struct ExecutedDispatch {
    kernel: CompiledKernel,
    parameters: Parameters,
    stress: StressParameters,
    invocations: Vec<Invocation>,
    results: Vec<u32>,
    locations: Vec<u32>,
    /// The words of the buffer of each binding.
    lengths: Vec<u32>,
}

/// Returns the index of the instance with salts: the one after the last.
fn salt_instance(kernel: &CompiledKernel, parameters: &Parameters) -> usize {
    (parameters.rounds * parameters.groups * kernel.lanes) as usize
}

/// Returns true for the reading of a salt.
fn is_salt(run: &ExecutedDispatch, touch: &BufferAccess) -> bool {
    run.kernel.bindings[touch.binding as usize] == Binding::Locations
        && touch.word / run.parameters.stride as usize == salt_instance(&run.kernel, &run.parameters)
}

fn is_waiting(invocation: &Invocation) -> bool {
    matches!(invocation.state, State::Waiting(..))
}

/// Executes a dispatch; `pick` selects the next of the runnable invocations.
fn execute_dispatch(
    test: &Test,
    config: &KernelConfig,
    waiting: RendezvousParameters,
    excess: SurplusWork,
    pick: &mut dyn FnMut(usize) -> usize,
) -> Option<ExecutedDispatch> {
    let kernel = shaders::compile(test, config).ok()?;
    let parameters = parameters(&kernel, waiting);
    let classes = workgroups_per_group(&kernel);
    let stress = stress(&kernel, &parameters, test.name.len() as u32);
    let mut program = Program::new(&kernel, parameters, stress);
    program.off_by_one = excess.off_by_one;
    let rounds = parameters.rounds + 2 * u32::from(excess.off_by_one);
    let instances = (rounds * parameters.groups * kernel.lanes) as usize;
    let mut locations = vec![POISON; (instances + 1) * parameters.stride as usize];
    for instance in 0..instances {
        for (storage, value) in kernel.initial_values.iter().enumerate() {
            locations[instance * parameters.stride as usize + storage * parameters.spacing as usize] =
                *value as u32;
        }
    }
    for storage in 0..kernel.storages {
        locations[salt_instance(&kernel, &parameters) * parameters.stride as usize
            + (storage * parameters.spacing) as usize] = SALT;
    }
    let results = vec![POISON; instances * kernel.results.len()];
    let claims = 16 + classes * parameters.groups * kernel.workgroup_size;
    let mut buffers = vec![
        locations,
        results,
        vec![0; parameters.groups as usize * 32],
        vec![0; SCRATCH_WORDS as usize],
        vec![0; claims as usize],
    ];
    let buffer_of: Vec<usize> = kernel
        .bindings
        .iter()
        .map(|binding| match binding {
            Binding::Locations | Binding::SeparateLocations => 0,
            Binding::Results => 1,
            Binding::Rendezvous => 2,
            Binding::Scratch => 3,
            Binding::Claims => 4,
        })
        .collect();
    let lengths = buffer_of.iter().map(|buffer| buffers[*buffer].len() as u32).collect();
    let all = classes * parameters.groups + stress.workgroups;
    let mut invocations = excess.invocations(&kernel, &program, all, config.subgroup_size);
    let mut running: Vec<usize> = (0..invocations.len()).collect();
    loop {
        while !running.is_empty() {
            let chosen = pick(running.len());
            let invocation = &mut invocations[running[chosen]];
            invocation.step(&program, &mut buffers, &buffer_of);
            if invocation.state != State::Running {
                running.swap_remove(chosen);
            }
        }
        // Every invocation that has not ended waits at a barrier, and all invocations of a workgroup wait at
        // the same one. Only the lanes in a branch execute a subgroup barrier in it.
        let size = (kernel.workgroup_size + excess.locals) as usize;
        for (first, members) in (0..).step_by(size).zip(invocations.chunks_mut(size)) {
            let alike = members.iter().all(|member| member.state == members[0].state);
            let tangled = members.iter().any(|member| is_waiting(member) && member.in_subgroup);
            assert!(alike || test.has_guarded_blocks() && tangled, "a barrier that not all reach");
            for (index, member) in (first..).zip(members) {
                if is_waiting(member) && (alike || member.in_subgroup) {
                    member.state = State::Running;
                    running.push(index);
                }
            }
        }
        if running.is_empty() {
            break;
        }
    }
    let results = std::mem::take(&mut buffers[1]);
    let locations = std::mem::take(&mut buffers[0]);
    let invocations = machine::stages::first_invocations(&kernel, invocations, &buffers[4]);
    let is_asked_for = |invocation: &Invocation| {
        invocation.row == 0 && invocation.workgroup < all && invocation.local < kernel.workgroup_size
    };
    let (invocations, surplus): (Vec<_>, Vec<_>) = invocations.into_iter().partition(is_asked_for);
    assert_eq!(invocations.len() as u32, all * kernel.workgroup_size);
    let overflow_word = 1 + kernel.roles.classes.len();
    for invocation in &surplus {
        let [only] = invocation.accesses[..] else { panic!("{}: {:?}", test.name, invocation.accesses) };
        assert_eq!(kernel.bindings[only.binding as usize], Binding::Rendezvous);
        assert_eq!((only.word, only.op), (overflow_word, Op::AtomicIAdd));
    }
    let overflow = buffers[2][overflow_word];
    if kernel.variant.stage.has_workgroups() && !excess.off_by_one {
        assert_eq!(overflow, surplus.len() as u32, "{}", test.name);
    }
    assert_eq!(overflow > 0, excess != SurplusWork::NONE, "{}", test.name);
    Some(ExecutedDispatch { kernel, parameters, stress, invocations, results, locations, lengths })
}

/// Interprets a thread of the test with the values that an invocation read. Returns its final registers, and
/// whether it reached the end: a loop stops after `bound` turns.
fn replay(
    test: &Test,
    thread: &Thread,
    id: ThreadId,
    touches: &[BufferAccess],
    bound: u32,
    context: &str,
) -> (Vec<u32>, bool) {
    let mut turns: BTreeMap<usize, u32> = BTreeMap::new();
    let mut registers: Vec<u32> = (0..thread.registers.len())
        .map(|register| test.initial_register(id, RegisterId(register as u16)).0 as u32)
        .collect();
    let mut touches = touches.iter();
    let mut position = 0;
    let jump = |label: LabelId| thread.label_index(label).unwrap();
    while let Some(instruction) = thread.instructions.get(position) {
        position += 1;
        let value = |operand: &Operand| match operand {
            Operand::Constant(constant) => *constant as u32,
            Operand::Register(register) => registers[usize::from(register.0)],
        };
        match &instruction.kind {
            InstructionKind::Access(MemoryAccess { place, kind, strength, .. }) => {
                let touch = touches.next().unwrap();
                let atomic = strength.is_atomic();
                match kind {
                    AccessKind::Load(destinations) => {
                        assert_eq!(touch.op, if atomic { Op::AtomicLoad } else { Op::Load }, "{context}");
                        registers[usize::from(destinations.first().0)] = touch.read.unwrap();
                    }
                    AccessKind::Store(values) => {
                        assert_eq!(touch.op, if atomic { Op::AtomicStore } else { Op::Store }, "{context}");
                        assert_eq!(touch.written, Some(value(&values.first())), "{context}");
                    }
                    AccessKind::Rmw { destination, operation } => {
                        let old = touch.read.unwrap();
                        let ty = place.scalar_type(test);
                        let apply = |operation: &ArithmeticOperation, operand| {
                            operation.apply(Value(u64::from(old)), Value(u64::from(operand)), ty).0 as u32
                        };
                        let new = match operation {
                            RmwOperation::Exchange(operand) => Some(value(operand)),
                            RmwOperation::Fetch(operation, operand) => Some(apply(operation, value(operand))),
                            RmwOperation::CompareExchange { compare, value: new, .. } => {
                                (value(compare) == old).then(|| value(new))
                            }
                        };
                        assert_eq!(touch.written, new, "{context}");
                        registers[usize::from(destination.unwrap().0)] = old;
                    }
                    AccessKind::Await { .. } => assert_eq!(test.dialect, Dialect::Hsa, "{context}"),
                }
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let ty = test.register_type(id, *destination);
                let (left, right) = (Value(u64::from(value(left))), Value(u64::from(value(right))));
                registers[usize::from(destination.0)] = operation.apply(left, right, ty).0 as u32;
            }
            InstructionKind::Flow(Flow::Goto(target)) => position = jump(*target),
            InstructionKind::Flow(Flow::Branch { relation, left, right, target })
                if relation.holds(i64::from(value(left) as i32), i64::from(value(right) as i32)) =>
            {
                let here = position;
                position = jump(*target);
                if position < here {
                    let made = turns.entry(position).or_insert(0);
                    *made += 1;
                    if *made == bound {
                        assert_eq!(
                            touches.next(),
                            None,
                            "{context}: accesses after a loop that reached its bound"
                        );
                        return (registers, false);
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(touches.next(), None, "{context}: more accesses than the thread has");
    (registers, true)
}

/// Returns the number of the workgroup with this id.
fn number_of(run: &ExecutedDispatch, workgroup: u32) -> u32 {
    if !run.kernel.is_stressed() {
        return workgroup;
    }
    let StressParameters { workgroups, workgroup_multiplier, workgroup_offset, .. } = run.stress;
    let all = run.parameters.groups * workgroups_per_group(&run.kernel) + workgroups;
    (workgroup * workgroup_multiplier + workgroup_offset) % all
}

/// Checks the memory stress of an invocation. Every round has the expected turns, each with the two accesses
/// of the pattern to the target word, between the last load of the rendezvous and the first access of the
/// thread.
fn check_stress(run: &ExecutedDispatch, index: usize) {
    let (kernel, s) = (&run.kernel, &run.stress);
    let invocation = &run.invocations[index];
    let of = |touch: &BufferAccess| kernel.bindings[touch.binding as usize];
    let touches: Vec<&BufferAccess> =
        invocation.accesses.iter().filter(|touch| of(touch) == Binding::Scratch).collect();
    if !kernel.is_stressed() {
        assert!(touches.is_empty());
        return;
    }
    let playing = run.parameters.groups * workgroups_per_group(kernel);
    let number = number_of(run, invocation.workgroup);
    let turns = if number >= playing { s.iterations } else { s.before };
    assert_eq!(touches.len() as u32, run.parameters.rounds * turns * 2);
    let word = ((number / s.chunk % s.lines) * s.step + s.base) % s.words;
    let op = |bit: u32| if s.pattern & bit == 0 { Op::AtomicStore } else { Op::AtomicLoad };
    for turn in touches.chunks(2) {
        assert_eq!([turn[0].op, turn[1].op], [op(1), op(2)]);
        assert!(turn.iter().all(|touch| touch.word == word as usize));
    }
    if number >= playing {
        assert_eq!(touches.len(), invocation.accesses.len(), "it does nothing else");
    }
    // One block per round, after its rendezvous.
    let scratch = |touch: &BufferAccess| of(touch) == Binding::Scratch;
    let blocks = invocation.accesses.split(|touch| !scratch(touch)).filter(|block| !block.is_empty());
    let expected = if number >= playing || s.before == 0 { 1 } else { run.parameters.rounds };
    let active = invocation.accesses.iter().any(|touch| of(touch) == Binding::Results);
    if active || number >= playing {
        assert_eq!(blocks.count() as u32, expected);
    }
    for pair in invocation.accesses.windows(2).filter(|pair| active && scratch(&pair[0])) {
        assert_ne!(of(&pair[1]), Binding::Rendezvous, "it follows the rendezvous");
    }
}

/// Checks the rendezvous of one invocation. It polls until all have arrived. If `spin` polls have failed over
/// all rounds, it never waits again. If its first poll succeeds, it makes `hold` more loads. One invocation
/// per workgroup arrives, once per rendezvous.
fn check_meetings(run: &ExecutedDispatch, index: usize, ids: &[ThreadId]) {
    let (kernel, p) = (&run.kernel, &run.parameters);
    let invocation = &run.invocations[index];
    let classes = kernel.roles.classes.len() as u32;
    let workgroup = number_of(run, invocation.workgroup);
    let group = match kernel.is_parallel {
        true => 0,
        false => (workgroup / (p.pairing * classes)) * p.pairing + workgroup % p.pairing,
    };
    let own = |slot: &&ResultSlot| slot.thread().is_some_and(|thread| ids.contains(&thread));
    let reports = kernel.results.iter().filter(own).count();
    let (mut reported, mut round, mut polls_left) = (0, 0, p.spin as usize);
    let (mut polls, mut arrivals, mut receipts) = (Vec::new(), 0, 0);
    let mut salted: Vec<u32> = Vec::new();
    for touch in &invocation.accesses {
        match kernel.bindings[touch.binding as usize] {
            Binding::Rendezvous if touch.word % 32 != 0 => {
                assert_eq!(invocation.local, 0);
                let (class, group) = match kernel.is_parallel {
                    true => (0, workgroup),
                    false => ((workgroup / p.pairing + p.turn) % classes, group),
                };
                assert_eq!(touch.word, (group * 32 + 1 + class) as usize);
                let (op, read, written) = match receipts {
                    0 => (Op::AtomicLoad, Some(0), None),
                    _ => (Op::AtomicStore, None, Some(receipt(run))),
                };
                assert_eq!((touch.op, touch.read, touch.written), (op, read, written));
                assert_eq!((reported, round, arrivals, polls.len()), (0, 0, 0, 0), "first of all");
                receipts += 1;
            }
            Binding::Rendezvous => {
                assert_eq!(touch.word, group as usize * 32);
                match touch.op {
                    Op::AtomicLoad => polls.push(touch.read.unwrap()),
                    Op::AtomicIAdd => {
                        assert_eq!(touch.written, touch.read.map(|before| before + 1));
                        assert!(polls.is_empty(), "arrives before it waits");
                        arrivals += 1;
                    }
                    other => assert_eq!(other, Op::AtomicLoad),
                }
            }
            Binding::Results => {
                reported += 1;
                if reported == reports {
                    let has_rendezvous = classes > 1 && p.spin > 0 && round % p.interval == 0;
                    assert_eq!(arrivals, u32::from(has_rendezvous && invocation.local == 0));
                    if has_rendezvous && polls_left > 0 {
                        let has_all_arrived = |seen: &u32| *seen >= p.party * (round / p.interval + 1);
                        match polls.iter().position(has_all_arrived) {
                            Some(failed_polls) => {
                                let held = if failed_polls == 0 { p.hold as usize } else { 0 };
                                assert_eq!(
                                    polls.len(),
                                    failed_polls + 1 + held,
                                    "it goes on once all are here"
                                );
                                polls_left -= failed_polls;
                            }
                            None => {
                                assert_eq!(polls.len(), polls_left, "it neither gives up early nor late");
                                polls_left = 0;
                            }
                        }
                    } else {
                        assert!(polls.is_empty(), "no workgroup to wait for, or no polls left");
                    }
                    (reported, round, arrivals) = (0, round + 1, 0);
                    polls.clear();
                }
            }
            Binding::Locations if is_salt(run, touch) => {
                assert_eq!((touch.op, touch.read, touch.written), (Op::Load, Some(SALT), None));
                assert_eq!(
                    (reported, round, arrivals, polls.len(), receipts),
                    (0, 0, 0, 0, 0),
                    "first of all"
                );
                salted.push(touch.binding);
            }
            Binding::Locations | Binding::SeparateLocations | Binding::Scratch | Binding::Claims => {}
        }
    }
    assert_eq!(round, p.rounds);
    assert_eq!(receipts, 2 * u32::from(invocation.local == 0));
    // One salt through each binding.
    let bound = (0..).zip(&kernel.bindings).filter(|(_, own)| **own == Binding::Locations);
    let bound: Vec<u32> = bound.map(|(number, _)| number).collect();
    assert_eq!(salted, if invocation.local == 0 { bound } else { Vec::new() });
}

fn receipt(run: &ExecutedDispatch) -> u32 {
    let (kernel, p) = (&run.kernel, &run.parameters);
    let lengths = kernel.measured_bindings.iter().map(|(binding, _)| run.lengths[*binding as usize]);
    let words = [
        [p.groups, p.rounds, p.spin, p.pairing],
        [p.group_multiplier, p.group_offset, p.lane_multiplier, p.lane_offset],
        [p.stride, p.spacing, p.poison, p.done],
        [p.interval, p.hold, p.turn, p.party],
    ];
    let salts = kernel.salted_paths.iter().map(|_| SALT);
    let words = lengths.chain(salts).chain(words.concat());
    let sum = words.fold(kernel.identity, |sum, word| sum.wrapping_mul(0x9e37_79b1).wrapping_add(word));
    2u32.wrapping_mul(sum).wrapping_add(1)
}

/// Returns the location accesses of each thread of each instance, in the order of the thread.
fn accesses_by_instance(run: &ExecutedDispatch) -> BTreeMap<(usize, usize), Vec<(usize, BufferAccess)>> {
    let mut found: BTreeMap<(usize, usize), Vec<(usize, BufferAccess)>> = BTreeMap::new();
    for (index, invocation) in run.invocations.iter().enumerate() {
        for touch in &invocation.accesses {
            let of_test = run.kernel.bindings[touch.binding as usize] == Binding::Locations;
            if of_test && !is_salt(run, touch) {
                let instance = touch.word / run.parameters.stride as usize;
                found.entry((index, instance)).or_default().push((index, *touch));
            }
        }
    }
    found
}

fn check(
    test: &Test,
    config: &KernelConfig,
    waiting: RendezvousParameters,
    pick: &mut dyn FnMut(usize) -> usize,
) -> bool {
    check_under(test, config, waiting, SurplusWork::NONE, pick)
}

/// Checks a dispatch with surplus work.
fn check_under(
    test: &Test,
    config: &KernelConfig,
    waiting: RendezvousParameters,
    excess: SurplusWork,
    pick: &mut dyn FnMut(usize) -> usize,
) -> bool {
    let Some(run) = execute_dispatch(test, config, waiting, excess, pick) else { return false };
    let (kernel, p) = (&run.kernel, &run.parameters);
    let name = &test.name;
    let (groups, lanes, classes) = (p.groups, kernel.lanes, workgroups_per_group(kernel));
    let total = (p.rounds * groups * lanes) as usize;

    // The location of each access, by binding and by position in the instance.
    let mut accessed: Vec<LocationId> = Vec::new();
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        accessed.extend(instruction.kind.access().map(|access| access.place.location));
    }
    accessed.sort();
    accessed.dedup();
    let mut storages: Vec<LocationId> =
        (0..test.locations.len()).map(|l| test.storage_of(LocationId(l as u16))).collect();
    let mut seen = Vec::new();
    storages.retain(|storage| {
        !seen.contains(storage) && {
            seen.push(*storage);
            true
        }
    });
    for invocation in &run.invocations {
        for touch in
            invocation.accesses.iter().filter(|t| kernel.bindings[t.binding as usize] == Binding::Locations)
        {
            let storage = test.storage_of(accessed[touch.binding as usize]);
            let number = storages.iter().position(|s| *s == storage).unwrap();
            assert_eq!(
                touch.word % p.stride as usize,
                number * p.spacing as usize,
                "{name}: place of a location"
            );
        }
    }

    // Interprets every thread of every instance at the slot of the formulas.
    let by_instance = accesses_by_instance(&run);
    let mut played = 0;
    for index in 0..run.invocations.len() {
        check_stress(&run, index);
    }
    for place in 0..classes * groups + run.stress.workgroups {
        let workgroup = number_of(&run, place);
        if workgroup >= classes * groups {
            continue;
        }
        let class_groups: Vec<(u32, u32)> = match kernel.is_parallel {
            true => (0..kernel.roles.classes.len() as u32).map(|class| (class, workgroup)).collect(),
            false => vec![(
                (workgroup / p.pairing + p.turn) % classes,
                (workgroup / (p.pairing * classes)) * p.pairing + workgroup % p.pairing,
            )],
        };
        for (local, (class, group)) in
            (0..kernel.workgroup_size).flat_map(|local| class_groups.iter().map(move |play| (local, *play)))
        {
            let index = (place * kernel.workgroup_size + local) as usize;
            let members = &kernel.roles.classes[class as usize];
            let lane = local % config.subgroup_size;
            let turned = local / config.subgroup_size + p.turn;
            let subgroup = turned % (kernel.workgroup_size / config.subgroup_size).max(1);
            let (thread, slot) = match kernel.requirements.subgroup_size {
                None if config.variant.shape != WorkgroupShape::Fitting => {
                    let sharing = kernel.roles.classes.iter().map(Vec::len).max().unwrap() as u32;
                    let turned = (local / lanes + p.turn) % sharing;
                    let role =
                        if local < lanes * sharing { members.get(turned as usize).copied() } else { None };
                    (role, local % lanes)
                }
                None => (Some(members[0]), local),
                Some(_) => {
                    let mut subgroups: Vec<u32> = Vec::new();
                    for member in members {
                        let ThreadPlace::Device(place) = test.thread(*member).place else { continue };
                        if !subgroups.contains(&place.subgroup) {
                            subgroups.push(place.subgroup);
                        }
                    }
                    let sharing: Vec<ThreadId> = members
                        .iter()
                        .copied()
                        .filter(|member| {
                            matches!(test.thread(*member).place, ThreadPlace::Device(place)
                                if subgroups.get(subgroup as usize) == Some(&place.subgroup))
                        })
                        .collect();
                    (sharing.get((lane / lanes) as usize).copied(), lane % lanes)
                }
            };
            let Some(id) = thread else {
                assert!(run.invocations[index].accesses.iter().all(|t| {
                    let own = &kernel.bindings[t.binding as usize];
                    [Binding::Rendezvous, Binding::Scratch].contains(own) || is_salt(&run, t)
                }));
                continue;
            };
            let in_round = ((group * p.group_multiplier + class * p.group_offset) % groups) * lanes
                + (slot * p.lane_multiplier + class * p.lane_offset) % lanes;
            for round in 0..p.rounds {
                let instance = (round * groups * lanes + in_round) as usize;
                let context = format!("{name}, {id:?} of instance {instance}");
                let touches: Vec<BufferAccess> = by_instance
                    .get(&(index, instance))
                    .map(|found| found.iter().map(|(_, touch)| *touch).collect())
                    .unwrap_or_default();
                let (registers, ended) =
                    replay(test, test.thread(id), id, &touches, config.loop_bound, &context);
                for (slot, result) in
                    kernel.results.iter().enumerate().filter(|(_, slot)| slot.thread() == Some(id))
                {
                    let expected = match result {
                        ResultSlot::Register(Observable::Register(_, register)) => {
                            registers[usize::from(register.0)]
                        }
                        _ if ended => DONE,
                        _ => !DONE,
                    };
                    assert_eq!(run.results[slot * total + instance], expected, "{context}, slot {slot}");
                }
                played += 1;
            }
            if class + 1 == kernel.roles.classes.len() as u32 || !kernel.is_parallel {
                let every: Vec<ThreadId> = kernel.roles.classes.iter().flatten().copied().collect();
                check_meetings(
                    &run,
                    index,
                    if kernel.is_parallel { &every } else { std::slice::from_ref(&id) },
                );
            }
            let rounds_with_accesses = by_instance.range((index, 0)..(index + 1, 0)).count();
            assert!(
                rounds_with_accesses <= p.rounds as usize * class_groups.len(),
                "{name}: an invocation runs one instance per round, or one for each thread"
            );
            let meetings = p.rounds.div_ceil(p.interval);
            let loop_ends = if kernel.thread_loops > 0 { kernel.thread_loops + 1 } else { 0 };
            let stress_turns = if kernel.is_stressed() { run.stress.before + 1 } else { 0 };
            assert!(
                run.invocations[index].loops
                    <= (p.rounds * (1 + kernel.max_loop_iterations + stress_turns)
                        + (2 + p.hold + loop_ends) * meetings
                        + p.spin
                        + 1) as usize,
                "{name}: loop iterations"
            );
        }
    }
    assert_eq!(played, total * test.threads.len(), "{name}: every thread of every instance");
    // Every result slot is written once for each instance.
    let mut writes: BTreeMap<usize, usize> = BTreeMap::new();
    for touch in run.invocations.iter().flat_map(|invocation| &invocation.accesses) {
        if kernel.bindings[touch.binding as usize] == Binding::Results {
            *writes.entry(touch.word).or_default() += 1;
        }
    }
    assert_eq!(writes.len(), run.results.len(), "{name}: every result word");
    assert!(writes.values().all(|count| *count == 1), "{name}: once");
    // Padding is unchanged.
    let storage_words = kernel.storages as usize;
    let touched = run.locations.iter().enumerate().filter(|(word, value)| {
        let place = word % p.stride as usize;
        **value != POISON
            && !(place.is_multiple_of(p.spacing as usize) && place / (p.spacing as usize) < storage_words)
    });
    assert_eq!(touched.count(), 0, "{name}: padding");
    true
}

/// Returns true if the interpreter supports the memory of a test: buffers of words in descriptors.
fn is_for_the_machine(test: &Test) -> bool {
    let word =
        |scalar: Option<ScalarType>| matches!(scalar.unwrap_or_default(), ScalarType::U32 | ScalarType::I32);
    test.locations.iter().all(|location| {
        !location.is_vector()
            && word(location.scalar)
            && matches!(location.reference, None | Some(Reference::Buffer))
    }) && test.threads.iter().flat_map(|thread| &thread.instructions).all(|instruction| {
        instruction.kind.access().is_none_or(|access| {
            let place = &access.place;
            (place.scalar.is_none() || word(place.scalar))
                && place.offset == 0
                && place.class == StorageClass::Buffer
                && !access.is_vector()
        })
    })
}

fn all_tests() -> Vec<Test> {
    let kernels = common::tests_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels")));
    let tests = kernels.into_iter().chain(common::own_corpus()).map(|(_, test)| test);
    tests.filter(is_for_the_machine).collect()
}

/// Returns one in ten of all tests; a soak returns all.
fn sampled_tests() -> Vec<Test> {
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 10 };
    all_tests().into_iter().step_by(share).collect()
}

/// A linear congruential generator for the order of execution; only reproducibility matters.
fn shuffled(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |count| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    }
}

#[test]
fn kernels_keep_the_contract() {
    let tests = sampled_tests();
    let soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let (mut runs, mut looping, mut every) = (0, 0, 0);
    for (index, test) in tests.iter().enumerate() {
        let narrow = KernelConfig { lanes: 5, ..NARROW };
        let stressed = KernelConfig { has_stress: true, ..LAVAPIPE };
        let loops = KernelConfig { thread_loops: true, ..LAVAPIPE };
        let parallel = KernelConfig { parallel: true, ..narrow };
        let pressed = KernelConfig { parallel: true, has_stress: true, thread_loops: true, ..LAVAPIPE };
        let waiting = |spin, interval, hold| RendezvousParameters { spin, interval, hold };
        every += usize::from(shaders::compile(test, &pressed).is_ok_and(|kernel| kernel.is_parallel));
        looping += usize::from(shaders::compile(test, &loops).is_ok_and(|kernel| kernel.thread_loops > 0));
        let configurations = [
            (LAVAPIPE, NO_RENDEZVOUS),
            (stressed, waiting(40, 2, 0)),
            (narrow, waiting(3, 1, 2)),
            (loops, waiting(40, 2, 1)),
            (loops, NO_RENDEZVOUS),
            (parallel, waiting(3, 2, 1)),
            (pressed, waiting(40, 2, 0)),
        ];
        for (nth, (config, waiting)) in configurations.into_iter().enumerate() {
            // Each schedule runs a quarter of the configurations, which alternate between tests; a soak runs
            // all.
            if soak || (index + nth) % 4 == 0 {
                runs += usize::from(check(test, &config, waiting, &mut shuffled(index as u64)));
            }
            // One invocation after another: every wait but the last is in vain.
            if soak || (index + nth) % 4 == 2 {
                runs += usize::from(check(test, &config, waiting, &mut |_| 0));
            }
        }
    }
    eprintln!(
        "{runs} dispatches of {} tests, {looping} with loops of their threads, {every} parallel",
        tests.len()
    );
    assert!(runs > if soak { 14 * 200 } else { 7 * 15 });
    assert!(looping > 15 && every > 15);
}

/// Vertices that are shaded up to three times, and fragments with helpers, run every thread of every instance
/// once.
#[test]
fn kernels_keep_the_contract_in_graphics_stages() {
    // The simulated GPU tests overlapping fragments, since it places points in the same pixels.
    let mut tests = sampled_tests();
    tests.retain(|test| test.interlock_order().is_none());
    let soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let mut runs = [0, 0];
    for (index, test) in tests.iter().enumerate() {
        for (stage, runs) in [CarrierStage::Vertex, CarrierStage::Fragment].into_iter().zip(&mut runs) {
            let variant = Variant { stage, ..Variant::default() };
            let stressed = KernelConfig { has_stress: true, variant, ..LAVAPIPE };
            let odd = KernelConfig { lanes: 5, vertex_lanes: 7, fragment_cell: (9, 2), variant, ..NARROW };
            let loops = KernelConfig { thread_loops: true, vertex_lanes: 8, variant, ..LAVAPIPE };
            let waiting = |spin, interval, hold| RendezvousParameters { spin, interval, hold };
            let configurations =
                [(stressed, waiting(40, 2, 0)), (odd, waiting(3, 1, 2)), (loops, waiting(40, 2, 1))];
            for (nth, (config, waiting)) in configurations.into_iter().enumerate() {
                if !soak && (index / 2 + nth) % 3 > 0 {
                    continue;
                }
                // In random order, or one invocation after another.
                *runs += usize::from(match index % 2 {
                    0 => check(test, &config, waiting, &mut shuffled(index as u64)),
                    _ => check(test, &config, waiting, &mut |_| 0),
                });
            }
        }
    }
    eprintln!("{runs:?} draws of {} tests", tests.len());
    assert!(runs.iter().all(|runs| *runs > if soak { 3 * 100 } else { 15 }), "{runs:?}");
}

/// Workgroups of every size, with whole and partial subgroups, in one and several dimensions, fulfil the same
/// contract.
#[test]
fn kernels_keep_the_contract_in_every_shape() {
    let tests = sampled_tests();
    let words =
        ["size-1", "size-2", "size-3", "size-7", "size-9", "size-16", "size-4x2", "size-1x5", "size-3x1x5"];
    let soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let (mut runs, mut idle) = (0, 0);
    for (index, test) in tests.iter().enumerate() {
        let shape: WorkgroupShape = words[index % words.len()].parse().unwrap();
        let variant = Variant { shape, ..Variant::default() };
        let stressed = KernelConfig { has_stress: true, variant, ..LAVAPIPE };
        let loops = KernelConfig { thread_loops: true, variant, ..NARROW };
        for (nth, (config, spin)) in [(stressed, 40), (loops, 2)].into_iter().enumerate() {
            let waiting = RendezvousParameters { spin, interval: 2, hold: 1 };
            let shuffle = soak || (index + nth) % 2 == 0;
            let holds = !shuffle || check(test, &config, waiting, &mut shuffled(index as u64));
            let in_order = soak || !shuffle;
            runs += usize::from(holds && (!in_order || check(test, &config, waiting, &mut |_| 0)));
            let kernel = shaders::compile(test, &config);
            idle += usize::from(kernel.is_ok_and(|kernel| {
                assert_eq!(WorkgroupShape::Sized(local_size(&kernel)), shape);
                let sharing = kernel.roles.classes.iter().map(Vec::len).max().unwrap() as u32;
                sharing * kernel.lanes < kernel.workgroup_size
            }));
        }
    }
    eprintln!("{runs} dispatches of {} tests, {idle} with invocations that idle", tests.len());
    assert!(runs > 50 && idle > 5, "{runs} {idle}");
}

/// Invocations outside the dispatch add 1 to the overflow word, access no other memory and execute every
/// barrier. The others run every thread of every instance once. In graphics stages they are vertices and
/// points.
#[test]
fn invocations_outside_the_grid_only_count_themselves() {
    let mut tests = sampled_tests();
    tests.retain(|test| test.interlock_order().is_none());
    // A soak runs both configurations of each test, other runs one.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    let excesses = [
        SurplusWork { workgroups: 1, ..SurplusWork::NONE },
        SurplusWork { workgroups: 31, ..SurplusWork::NONE },
        SurplusWork { second_row: true, ..SurplusWork::NONE },
        SurplusWork { locals: 1, ..SurplusWork::NONE },
        SurplusWork { locals: 8, workgroups: 1, ..SurplusWork::NONE },
    ];
    let (mut runs, mut draws) = (0, 0);
    for (index, test) in tests.iter().enumerate() {
        let excess = excesses[index % excesses.len()];
        let stressed = KernelConfig { has_stress: true, ..LAVAPIPE };
        let loops = KernelConfig { thread_loops: true, ..LAVAPIPE };
        let parallel = KernelConfig { parallel: true, lanes: 5, ..NARROW };
        let waiting = RendezvousParameters { spin: 40, interval: 2, hold: 1 };
        let configurations = [[LAVAPIPE, stressed], [loops, parallel]][index / 5 % 2];
        for config in configurations.into_iter().skip(index / 10 % share).step_by(share) {
            let pick = &mut shuffled(index as u64);
            runs += usize::from(check_under(test, &config, waiting, excess, pick));
        }
        for stage in [[CarrierStage::Vertex], [CarrierStage::Fragment]][index % 2] {
            let variant = Variant { stage, ..Variant::default() };
            let config = KernelConfig { has_stress: index % 4 < 2, variant, ..LAVAPIPE };
            let more = SurplusWork { workgroups: 1 + index as u32 % 7, ..SurplusWork::NONE };
            draws += usize::from(check_under(test, &config, waiting, more, &mut |_| 0));
        }
    }
    eprintln!("{runs} dispatches and {draws} draws of {} tests", tests.len());
    assert!(runs > 30 && draws > 15, "{runs} {draws}");
}

/// A surplus round is counted, in a loop shared by all threads and in a loop for each thread.
#[test]
fn surplus_rounds_are_counted() {
    let (mut runs, mut looping) = (0, 0);
    for (index, test) in all_tests().iter().enumerate().step_by(14) {
        let loops = KernelConfig { thread_loops: true, ..LAVAPIPE };
        let parallel = KernelConfig { parallel: true, lanes: 5, ..NARROW };
        looping += usize::from(shaders::compile(test, &loops).is_ok_and(|kernel| kernel.thread_loops > 0));
        for config in [LAVAPIPE, loops, parallel] {
            let excess = SurplusWork { off_by_one: true, ..SurplusWork::NONE };
            runs += usize::from(
                execute_dispatch(test, &config, NO_RENDEZVOUS, excess, &mut shuffled(index as u64)).is_some(),
            );
        }
    }
    assert!(runs > 50 && looping > 10, "{runs} {looping}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_keep_the_contract(test in random::test(), seed in any::<u64>()) {
        let config = KernelConfig { lanes: 3, has_stress: seed % 2 == 1, thread_loops: seed % 3 == 0, parallel: seed % 5 < 2, ..NARROW };
        let waiting = RendezvousParameters { spin: 2, interval: 2, hold: 1 };
        prop_assert!(check(&test, &config, waiting, &mut shuffled(seed)));
        let kernel = shaders::compile(&test, &config).unwrap();
        kernel_oracle::lift::verify(&test, &kernel).unwrap();
    }
}

#[test]
fn random_kernels_are_valid_modules() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut validator = common::Validator::new();
    for case in 0..150 {
        let test = random::test().new_tree(&mut runner).unwrap().current();
        let config = KernelConfig {
            has_stress: case % 2 == 1,
            thread_loops: case % 3 > 0,
            parallel: case % 5 < 2,
            ..NARROW
        };
        let kernel = shaders::compile(&test, &config).unwrap();
        validator.validate(&format!("case {case}: {test:?}"), &kernel);
    }
    eprintln!("{} modules through spirv-val", validator.validated);
}
