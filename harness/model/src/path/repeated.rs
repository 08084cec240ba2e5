//! Turns of loops that are left out of a path, because they leave the state of the thread as it was.
//!
//! A turn is redundant if every live register is equal before and after it, and if it only reads, writes back
//! what it read, or stores to storages that no instruction reads. Removing its events from an execution leaves
//! the values of all others. It removes order and adds none, so the rest stays consistent, and what raced still
//! races. The stores take part in no release sequence, since no read-modify-write accesses their storage.
//!
//! Two uses of a turn are lost with it: an access of the turn may be one of the two that race, and a store of it
//! may be the write that the final value is read from. Other threads may wait for later code of the thread, so
//! the turn cannot be shown at the end of a path instead. One race needs one turn of a thread, and so does each
//! final value. A path therefore has at most as many redundant turns of one loop as its turns have uses.

use litmus::{BranchRelation, Dialect, LocationId, Observable, RegisterId, Test, ThreadId, Value};

use super::{PartialPath, StepKind};
use crate::conflict::may_race;
use crate::liveness::live_registers;
use crate::stored::{is_only_stored, stored_values};
use crate::symbolic::{LocalRead, Symbolic};

/// The facts about a thread with loops that decide if a turn is redundant.
#[derive(Default)]
pub(super) struct LoopFacts {
    /// The live registers at each instruction.
    live: Vec<Vec<bool>>,
    /// For each instruction, true if it may race with another thread or read an undefined value.
    races: Vec<bool>,
    /// For each storage its values, if they are known and few.
    stored: Vec<Option<Vec<Value>>>,
    /// For each storage, true if stores to it may be left out.
    is_only_stored: Vec<bool>,
    /// For each storage, true if its final value is observed.
    is_observed: Vec<bool>,
}

impl LoopFacts {
    /// Collects the facts about a thread whose final registers are observed as given.
    ///
    /// Stores are left out only if `knows_text` is set: the model is the Vulkan memory model.
    pub(super) fn new(test: &Test, thread: ThreadId, observed: &[bool], knows_text: bool) -> LoopFacts {
        let instructions = &test.thread(thread).instructions;
        let is_plain = test.dialect != Dialect::Hsa && !test.has_undefined() && test.system_sync.is_empty();
        let own = usize::from(thread.0);
        let storages = || (0..test.locations.len()).map(|index| LocationId(index as u16));
        let observables = test.observables();
        let is_observed = |storage| {
            let is_final = |observable: &Observable| matches!(observable, Observable::Location(name, _) if test.storage_of(*name) == storage);
            observables.iter().any(is_final)
        };
        let races = instructions.iter().map(|instruction| {
            instruction.kind.access().is_some_and(|access| !is_plain || may_race(test, (own, access)))
        });
        LoopFacts {
            live: live_registers(instructions, observed),
            races: races.collect(),
            stored: storages().map(|storage| stored_values(test, storage)).collect(),
            is_only_stored: storages()
                .map(|storage| knows_text && is_plain && is_only_stored(test, storage))
                .collect(),
            is_observed: storages().map(is_observed).collect(),
        }
    }
}

/// A use of a turn that is otherwise redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnUse {
    /// One of its accesses may race.
    Race,
    /// The final value of a storage may be one that it stores.
    FinalValue(LocationId),
}

/// The redundant turns of one loop that a path has.
#[derive(Clone)]
pub(super) struct RepeatedTurns {
    label: usize,
    count: usize,
    uses: Vec<TurnUse>,
}

impl PartialPath {
    /// Returns the uses of the turn since control last reached the label; `None` if it is not redundant.
    pub(super) fn redundant_turn(&self, label: usize, facts: &LoopFacts) -> Option<Vec<TurnUse>> {
        let head = self.heads.iter().find(|head| head.at == label)?;
        let live = facts.live.get(label)?;
        let (before, since) = self.path.steps.split_at(head.steps);
        // The numbers of reads continue across iterations.
        let mut read = before.iter().filter(|step| step.kind.reads()).count();
        let mut uses = Vec::new();
        for step in since {
            let own = read as LocalRead;
            read += usize::from(step.kind.reads());
            let is_redundant = match &step.kind {
                StepKind::Read(_) | StepKind::Rmw(_, None) | StepKind::Fence(..) => true,
                StepKind::Rmw(memory, Some(written)) => {
                    let held = facts.stored.get(usize::from(memory.extent.storage.0));
                    self.puts_back(own, written, held.and_then(Option::as_deref))
                }
                StepKind::Write(memory, _) => {
                    let storage = memory.extent.storage;
                    if facts.is_observed.get(usize::from(storage.0)) == Some(&true) {
                        uses.push(TurnUse::FinalValue(storage));
                    }
                    facts.is_only_stored.get(usize::from(storage.0)) == Some(&true)
                }
                StepKind::ControlBarrier
                | StepKind::SplitBarrier
                | StepKind::Subgroup(_)
                | StepKind::System => false,
            };
            if !is_redundant {
                return None;
            }
            if facts.races.get(usize::from(step.instruction)) == Some(&true) {
                uses.push(TurnUse::Race);
            }
        }
        let name = |register| RegisterId(register as u16);
        let is_equal = live.iter().enumerate().filter(|(_, live)| **live).all(|(register, _)| {
            self.path.registers[register] == head.registers[register]
                && self.comparisons.of(name(register)) == head.comparisons.of(name(register))
        });
        is_equal.then_some(uses)
    }

    /// Adds a redundant turn to the path; false if the earlier ones of its loop suffice for all uses.
    pub(super) fn repeat_turn(&mut self, label: usize, uses: &[TurnUse]) -> bool {
        let at = self.repeated.iter().position(|turns| turns.label == label).unwrap_or_else(|| {
            self.repeated.push(RepeatedTurns { label, count: 0, uses: Vec::new() });
            self.repeated.len() - 1
        });
        let turns = &mut self.repeated[at];
        for one in uses {
            if !turns.uses.contains(one) {
                turns.uses.push(*one);
            }
        }
        // Each turn that an execution needs has a use that no other has, so the number of turns cannot
        // exceed the number of uses.
        let is_needed = !uses.is_empty() && turns.count < turns.uses.len();
        turns.count += usize::from(is_needed);
        is_needed
    }

    /// Returns true if the taken branches imply that the written value equals the value read, which is one of
    /// `held` if these are known.
    fn puts_back(&self, read: LocalRead, written: &Symbolic<LocalRead>, held: Option<&[Value]>) -> bool {
        let pinned = self.path.constraints.iter().find_map(|constraint| {
            let value = match (&constraint.left, &constraint.right) {
                (Symbolic::Read(own), Symbolic::Known(value))
                | (Symbolic::Known(value), Symbolic::Read(own)) => (*own == read).then_some(value),
                _ => None,
            };
            value.filter(|_| constraint.holds && constraint.relation == BranchRelation::Equal)
        });
        let Some(values) = pinned.map(std::slice::from_ref).or(held) else { return false };
        values.iter().all(|value| {
            let mut known = |own| (own == read).then_some(*value);
            self.path.constraints.iter().any(|constraint| constraint.met(&mut known) == Some(false))
                || written.evaluate(&mut known) == Some(*value)
        })
    }
}
