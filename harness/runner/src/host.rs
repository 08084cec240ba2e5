//! Host threads of a test as host threads of a plan, and their reports among the results.

use litmus::{
    Access, AccessKind, Comparison, Flow, InstructionKind, LocationId, Operand, SystemOperation, Test,
};
use plan::{
    BatchStart, BufferId, HostAct, HostLayout, HostOperation, HostPlace, HostRelation, HostReport,
    HostThread, HostValue, Hosts, SemaphoreId,
};
use shaders::host::{HostThreadAct, SubmissionStart};
use shaders::{Parameters, Program, ResultSlot};

use crate::join::Join;
use crate::stress::Stress;

/// The maximum of `nonCoherentAtomSize` that Vulkan allows, in words.
const LARGEST_ATOM_WORDS: u32 = 64;
/// Returns the host threads of a program made from `test`, with locations in `buffer`: the derived threads,
/// or the calls of the test itself.
pub(crate) fn plan_hosts(program: &Program, test: &Test, buffer: BufferId, join: Join) -> Option<Hosts> {
    let hosts = program.hosts.as_ref()?;
    let code = HostCode { test, noncoherent: hosts.is_noncoherent };
    let called =
        hosts.call_schedule.as_ref().and_then(|called| called.as_ref().ok()).filter(|_| join == Join::Calls);
    let threads = called.map_or(&hosts.threads, |called| &called.threads).iter().map(|host| {
        let thread = test.thread(host.thread);
        let acts = host.acts.iter().map(|act| match act {
            HostThreadAct::Execute(range) => {
                HostAct::Execute(code.host_operations(&thread.instructions, range.clone()))
            }
            HostThreadAct::Submit(batch) => HostAct::Submit(*batch),
            HostThreadAct::Wait(batch) => HostAct::Wait(*batch),
            HostThreadAct::Signal(semaphore, value) => {
                HostAct::Signal { semaphore: SemaphoreId(*semaphore), value: *value }
            }
            HostThreadAct::Await(semaphore, value) => {
                HostAct::Await { semaphore: SemaphoreId(*semaphore), value: *value }
            }
        });
        let slots = program.results.iter().filter(|slot| slot.thread() == Some(host.thread));
        let reports = slots.map(|slot| match slot {
            ResultSlot::Register(litmus::Observable::Register(_, register)) => {
                HostReport::Register(register.0.into())
            }
            _ => HostReport::Done,
        });
        HostThread {
            acts: acts.collect(),
            registers: thread.registers.len() as u32,
            reports: reports.collect(),
        }
    });
    let start = |start: SubmissionStart| match start {
        SubmissionStart::Submitted => BatchStart::Submitted,
        // The wait of a held batch is a step of the plan.
        SubmissionStart::Early | SubmissionStart::Held => BatchStart::Early,
    };
    let batches = match called {
        Some(called) => called.batches.iter().map(|batch| start(batch.start)).collect(),
        None => hosts.submission_starts.iter().map(|own| start(*own)).collect(),
    };
    Some(Hosts { threads: threads.collect(), buffer, batches, is_in_order: called.is_some() })
}

/// Counts the slots that host threads report, which are the last ones.
pub(crate) fn count_report_slots(hosts: &Hosts) -> usize {
    hosts.threads.iter().map(|thread| thread.reports.len()).sum()
}

/// Returns the host's part of a dispatch with `parameters`.
pub(crate) fn host_layout(parameters: &Parameters, instances: usize, storage_words: usize) -> HostLayout {
    HostLayout {
        instances: instances as u32,
        stride: parameters.stride * storage_words as u32,
        spacing: parameters.spacing * storage_words as u32,
        done: parameters.done,
        poison: parameters.poison,
    }
}

/// Adapts a stress: flushed or invalidated memory must not share an atom of the device with other memory.
pub(crate) fn align_to_atoms(program: &Program, stress: &mut Stress) {
    if program.hosts.as_ref().is_some_and(|hosts| hosts.is_noncoherent) {
        stress.spacing = (LARGEST_ATOM_WORDS, LARGEST_ATOM_WORDS);
        stress.padding = (0, 0);
    }
}

/// Copies the reports of host threads to their slots, the last ones.
pub(crate) fn copy_reports<'a>(
    results: &'a mut [u32],
    reported: &[u32],
    slots: usize,
    instances: usize,
) -> &'a [u32] {
    let end = (slots * instances).min(results.len());
    let first = end.saturating_sub(reported.len());
    results.iter_mut().skip(first).zip(reported).for_each(|(slot, word)| *slot = *word);
    results
}

struct HostCode<'a> {
    test: &'a Test,
    noncoherent: bool,
}

impl HostCode<'_> {
    fn host_operations(
        &self,
        instructions: &[litmus::Instruction],
        range: std::ops::Range<usize>,
    ) -> Vec<HostOperation> {
        // Labels are not operations; jumps count the operations in between.
        let own = instructions.get(range.clone()).unwrap_or_default();
        let is_label = |kind: &InstructionKind| matches!(kind, InstructionKind::Flow(Flow::Label(_)));
        let operations_until = |at: usize, target: &litmus::LabelId| {
            let following = own.iter().skip(at + 1).map(|instruction| &instruction.kind);
            following
                .take_while(
                    |kind| !matches!(kind, InstructionKind::Flow(Flow::Label(here)) if here == target),
                )
                .filter(|kind| !is_label(kind))
                .count() as u32
        };
        own.iter()
            .enumerate()
            .filter(|(_, instruction)| !is_label(&instruction.kind))
            .filter_map(|(at, instruction)| {
                Some(match &instruction.kind {
                    InstructionKind::Access(access) => {
                        let place = self.host_place(access.place.location);
                        let order = match access.strength {
                            Access::Atomic { semantics, .. } => Some(semantics.order),
                            _ => None,
                        };
                        match access.kind {
                            AccessKind::Load(registers) => {
                                HostOperation::Load { register: registers.first().0.into(), place, order }
                            }
                            AccessKind::Store(values) => {
                                HostOperation::Store { place, value: to_host_value(values.first()), order }
                            }
                            AccessKind::Rmw { .. } | AccessKind::Await { .. } => return None,
                        }
                    }
                    InstructionKind::Fence { semantics, .. } => HostOperation::Fence(semantics.order),
                    InstructionKind::System(SystemOperation::Flush(names)) => {
                        HostOperation::Flush(self.host_places(names))
                    }
                    InstructionKind::System(SystemOperation::Invalidate(names)) => {
                        HostOperation::Invalidate(self.host_places(names))
                    }
                    InstructionKind::Flow(Flow::Goto(target)) => {
                        HostOperation::Skip { condition: None, count: operations_until(at, target) }
                    }
                    InstructionKind::Flow(Flow::Branch { relation: how, left, right, target }) => {
                        HostOperation::Skip {
                            condition: Some((
                                to_host_relation(*how),
                                to_host_value(*left),
                                to_host_value(*right),
                            )),
                            count: operations_until(at, target),
                        }
                    }
                    _ => return None,
                })
            })
            .collect()
    }

    /// Returns the storage of a name. For coherent memory, all names of a storage are equivalent.
    fn host_place(&self, location: LocationId) -> HostPlace {
        let mut storages: Vec<LocationId> = Vec::new();
        let mut number = 0;
        for other in (0..self.test.locations.len()).map(|index| LocationId(index as u16)) {
            let storage = self.test.storage_of(other);
            let known = storages.iter().position(|known| *known == storage);
            let own = known.unwrap_or(storages.len());
            if known.is_none() {
                storages.push(storage);
            }
            if other == location {
                number = own as u32;
            }
        }
        let name = if self.noncoherent { location.0.into() } else { number };
        HostPlace { storage: number, name }
    }

    /// Returns the places of some names, or of all names if the list is empty.
    fn host_places(&self, names: &[LocationId]) -> Vec<HostPlace> {
        if names.is_empty() {
            return (0..self.test.locations.len())
                .map(|index| self.host_place(LocationId(index as u16)))
                .collect();
        }
        names.iter().map(|name| self.host_place(*name)).collect()
    }
}

fn to_host_value(operand: Operand) -> HostValue {
    match operand {
        Operand::Constant(constant) => HostValue::Number(constant as u32),
        Operand::Register(register) => HostValue::Register(register.0.into()),
    }
}

fn to_host_relation(relation: Comparison) -> HostRelation {
    match relation {
        Comparison::Equal => HostRelation::Equal,
        Comparison::NotEqual => HostRelation::NotEqual,
        Comparison::GreaterOrEqual => HostRelation::GreaterOrEqual,
        Comparison::LessOrEqual => HostRelation::LessOrEqual,
        Comparison::Greater => HostRelation::Greater,
        Comparison::Less => HostRelation::Less,
    }
}
