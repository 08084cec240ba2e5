//! Loop iterations that are omitted from a path, because they do not change the state of the thread.
//!
//! An iteration is redundant if it changes no register whose value has an effect later, and if it only reads, writes
//! back what it read, or stores to storages that no instruction reads. A counter of attempts has an effect if a branch
//! reads it, so iterations of a loop that ends after some attempts are not redundant. Removing the events of a
//! redundant iteration from an execution leaves the values of all others. It removes order and adds none, so the rest
//! stays consistent, and what raced still races. The stores take part in no release sequence, since no
//! read-modify-write accesses their storage.
//!
//! An omitted iteration loses two uses: one of its accesses may be one of the two that race, and a store of it
//! may be the write that the final value is read from. Other threads may wait for later code of the thread, so
//! the iteration cannot end a path instead. One race needs one iteration of a thread, and so does each
//! final value. A path therefore has at most as many redundant iterations of one loop as these have uses.
//!
//! An iteration without events waits for nothing. If it changes a register that is read, the loop bound applies, even
//! if the register has no effect: lifted code ends a path at its own bound with a loop that only counts.

use litmus::{BranchRelation, Dialect, LocationId, Observable, RegisterId, Test, ThreadId, Value};

use super::{PartialPath, StepKind};
use crate::conflict::may_race;
use crate::liveness::{live_registers, strongly_live_registers};
use crate::storage_values::{is_write_only, stored_values};
use crate::symbolic::{ReadIndex, SymbolicValue};

/// The facts about a thread with loops that decide if an iteration is redundant.
#[derive(Default)]
pub(super) struct LoopFacts {
    /// The live registers at each instruction.
    live: Vec<Vec<bool>>,
    /// Those of them whose values may have an effect.
    strongly_live: Vec<Vec<bool>>,
    /// For each instruction, true if it may race with another thread or read an undefined value.
    may_race: Vec<bool>,
    /// For each storage its values, if they are known and few.
    stored: Vec<Option<Vec<Value>>>,
    /// For each storage, true if stores to it may be left out.
    is_write_only: Vec<bool>,
    /// For each storage, true if its final value is observed.
    is_observed: Vec<bool>,
}

impl LoopFacts {
    /// Collects the facts about a thread whose final registers are observed as given.
    ///
    /// Stores are left out only if `knows_text` is set: the model is the Vulkan memory model.
    pub(super) fn new(test: &Test, thread: ThreadId, observed: &[bool], knows_text: bool) -> LoopFacts {
        let instructions = &test.thread(thread).instructions;
        let is_plain =
            test.dialect != Dialect::Hsa && !test.has_undefined_locations() && test.system_sync.is_empty();
        let thread_index = usize::from(thread.0);
        let storages = || (0..test.locations.len()).map(|index| LocationId(index as u16));
        let observables = test.observables();
        let is_observed = |storage| {
            let is_final = |observable: &Observable| matches!(observable, Observable::Location(name, _) if test.storage_of(*name) == storage);
            observables.iter().any(is_final)
        };
        let races = instructions.iter().map(|instruction| {
            instruction
                .kind
                .access()
                .is_some_and(|access| !is_plain || may_race(test, (thread_index, access)))
        });
        LoopFacts {
            live: live_registers(instructions, observed),
            strongly_live: strongly_live_registers(instructions, observed),
            may_race: races.collect(),
            stored: storages().map(|storage| stored_values(test, storage)).collect(),
            is_write_only: storages()
                .map(|storage| knows_text && is_plain && is_write_only(test, storage))
                .collect(),
            is_observed: storages().map(is_observed).collect(),
        }
    }
}

/// A use of an iteration that is otherwise redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IterationUse {
    /// One of its accesses may race.
    Race,
    /// The final value of a storage may be one that it stores.
    FinalValue(LocationId),
}

/// The redundant iterations of one loop on a path.
#[derive(Clone)]
pub(super) struct RepeatedIterations {
    label: usize,
    count: usize,
    uses: Vec<IterationUse>,
}

impl PartialPath {
    /// Returns the uses of the iteration since control last reached the label; `None` if it is not redundant.
    pub(super) fn redundant_iteration_uses(
        &self,
        label: usize,
        facts: &LoopFacts,
    ) -> Option<Vec<IterationUse>> {
        let head = self.loop_heads.iter().find(|head| head.label == label)?;
        let (before, since) = self.path.steps.split_at(head.steps);
        let live = if since.is_empty() { facts.live.get(label)? } else { facts.strongly_live.get(label)? };
        // The numbers of reads continue across iterations.
        let mut read = before.iter().filter(|step| step.kind.is_read()).count();
        let mut uses = Vec::new();
        for step in since {
            let own = read as ReadIndex;
            read += usize::from(step.kind.is_read());
            let is_redundant = match &step.kind {
                StepKind::Read(_) | StepKind::Rmw(_, None) | StepKind::Fence(..) => true,
                StepKind::Rmw(memory, Some(written)) => {
                    let known_values = facts.stored.get(usize::from(memory.extent.storage.0));
                    self.writes_back(own, written, known_values.and_then(Option::as_deref))
                }
                StepKind::Write(memory, _) => {
                    let storage = memory.extent.storage;
                    if facts.is_observed.get(usize::from(storage.0)) == Some(&true) {
                        uses.push(IterationUse::FinalValue(storage));
                    }
                    facts.is_write_only.get(usize::from(storage.0)) == Some(&true)
                }
                StepKind::ControlBarrier
                | StepKind::SplitBarrier
                | StepKind::Subgroup(_)
                | StepKind::System => false,
            };
            if !is_redundant {
                return None;
            }
            if facts.may_race.get(usize::from(step.instruction)) == Some(&true) {
                uses.push(IterationUse::Race);
            }
        }
        let name = |register| RegisterId(register as u16);
        let is_equal = live.iter().enumerate().filter(|(_, live)| **live).all(|(register, _)| {
            self.path.registers[register] == head.registers[register]
                && self.comparisons.comparison_of(name(register))
                    == head.comparisons.comparison_of(name(register))
        });
        is_equal.then_some(uses)
    }

    /// Adds a redundant iteration to the path; false if the earlier ones of its loop suffice for all uses.
    pub(super) fn repeat_iteration(&mut self, label: usize, uses: &[IterationUse]) -> bool {
        let at =
            self.repeated_iterations.iter().position(|turns| turns.label == label).unwrap_or_else(|| {
                self.repeated_iterations.push(RepeatedIterations { label, count: 0, uses: Vec::new() });
                self.repeated_iterations.len() - 1
            });
        let iterations = &mut self.repeated_iterations[at];
        for new_use in uses {
            if !iterations.uses.contains(new_use) {
                iterations.uses.push(*new_use);
            }
        }
        // Each needed iteration has a use that no other has, so the number of iterations cannot
        // exceed the number of uses.
        let is_needed = !uses.is_empty() && iterations.count < iterations.uses.len();
        iterations.count += usize::from(is_needed);
        is_needed
    }

    /// Returns true if the taken branches imply that the written value equals the value read, which is one of
    /// `known_values` if these are given.
    fn writes_back(
        &self,
        read: ReadIndex,
        written: &SymbolicValue<ReadIndex>,
        known_values: Option<&[Value]>,
    ) -> bool {
        let pinned = self.path.constraints.iter().find_map(|constraint| {
            let value = match (&constraint.left, &constraint.right) {
                (SymbolicValue::Read(own), SymbolicValue::Known(value))
                | (SymbolicValue::Known(value), SymbolicValue::Read(own)) => (*own == read).then_some(value),
                _ => None,
            };
            value.filter(|_| constraint.holds && constraint.relation == BranchRelation::Equal)
        });
        let Some(values) = pinned.map(std::slice::from_ref).or(known_values) else { return false };
        values.iter().all(|value| {
            let mut known = |own| (own == read).then_some(*value);
            self.path.constraints.iter().any(|constraint| constraint.is_satisfied(&mut known) == Some(false))
                || written.evaluate(&mut known) == Some(*value)
        })
    }
}
