//! Loop iterations that are omitted from a path, because they only replace a carried value: the expected value of a
//! compare-exchange that failed.
//!
//! Let registers hold the results P, K and L of reads at three successive visits of a label, and let all other live
//! registers be equal at these. Let the two iterations between them take equal steps, without a write by a
//! read-modify-write, under equal constraints, with P and K of the first in place of K and L of the second. Let
//! the only constraint on both K and L be that they differ. Then one of two removals is possible, under the
//! conditions of [`repeated_iterations`](super::repeated_iterations):
//!
//! - If the values of P and L differ, the first iteration is removed. With P in place of K, the second one satisfies
//!   its constraints: those on K alone are those that P satisfied in the first one. It leaves the same state.
//! - If they are equal, both iterations are removed: the state after them is that before them.
//!
//! Values that depended on K or L then depend on P, so such paths do not show if a race needs out-of-thin-air values.
//! Stores of the second iteration may store another value than before, so nothing may read them. One use of an
//! iteration thus keeps two of them, since each iteration is the first of one pair and the second of another.

use litmus::{RegisterId, ScalarType};

use super::{LoopHead, PartialPath, StepKind, ThreadPath, ThreadStep};
use crate::symbolic::{Constraint, ReadIndex, SymbolicValue};

/// A position on a path: the numbers of its steps, constraints and taken branches so far.
#[derive(Clone, Copy)]
pub(super) struct PathPosition {
    pub(super) steps: usize,
    constraints: usize,
    taken_branches: usize,
}

impl PathPosition {
    /// Returns the end of a path.
    pub(super) fn of(path: &ThreadPath) -> PathPosition {
        PathPosition {
            steps: path.steps.len(),
            constraints: path.constraints.len(),
            taken_branches: path.taken_branches.len(),
        }
    }
}

/// The steps, constraints and taken branches of one iteration, with the number of its first read.
struct IterationSteps<'a> {
    steps: &'a [ThreadStep],
    constraints: &'a [Constraint<ReadIndex>],
    taken_branches: &'a [u16],
    first_read: ReadIndex,
}

impl PartialPath {
    /// Returns the live registers whose value or comparison differs from that at a loop head.
    pub(super) fn differing_registers<'a>(
        &'a self,
        head: &'a LoopHead,
        live: &'a [bool],
    ) -> impl Iterator<Item = usize> + 'a {
        let comparison_differs = move |register: usize| {
            let name = RegisterId(register as u16);
            self.comparisons.comparison_of(name) != head.comparisons.comparison_of(name)
        };
        live.iter().enumerate().filter(|(_, live)| **live).map(|(register, _)| register).filter(
            move |register| {
                self.path.registers[*register] != head.registers[*register] || comparison_differs(*register)
            },
        )
    }

    /// Returns true if the iteration since `head` repeats the one before it and only replaces a carried value.
    pub(super) fn only_replaces_carried_values(&self, head: &LoopHead, live: &[bool]) -> bool {
        let Some(earlier) = head.previous.as_deref() else { return false };
        // The read that the registers carry at each of the three visits.
        let mut carried: Option<[ReadIndex; 3]> = None;
        for register in self.differing_registers(head, live) {
            let name = RegisterId(register as u16);
            let comparison = self.comparisons.comparison_of(name);
            let values = [&earlier.registers, &head.registers, &self.path.registers];
            let [SymbolicValue::Read(oldest), SymbolicValue::Read(old), SymbolicValue::Read(new)] =
                values.map(|registers| &registers[register])
            else {
                return false;
            };
            let reads = [*oldest, *old, *new];
            let has_equal_comparison = comparison == head.comparisons.comparison_of(name)
                && comparison == earlier.comparisons.comparison_of(name);
            if !has_equal_comparison || *carried.get_or_insert(reads) != reads {
                return false;
            }
        }
        let Some([oldest, old, new]) = carried else { return false };
        // The other live registers must not differ before the earlier iteration either.
        let is_unchanged = |register: usize| {
            let value = &self.path.registers[register];
            *value == SymbolicValue::Read(new) || *value == earlier.registers[register]
        };
        if !live.iter().enumerate().filter(|(_, live)| **live).all(|(register, _)| is_unchanged(register)) {
            return false;
        }
        let now = PathPosition::of(&self.path);
        let (Some(first), Some(second)) = (
            self.iteration_between(earlier.position, head.position),
            self.iteration_between(head.position, now),
        ) else {
            return false;
        };
        let is_same_step = |one: &ThreadStep, other: &ThreadStep| {
            one.instruction == other.instruction
                && std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind)
                && ![one, other].iter().any(|step| matches!(step.kind, StepKind::Rmw(_, Some(_))))
        };
        let reads_of = |iteration: &IterationSteps<'_>| {
            iteration.steps.iter().filter(|step| step.kind.is_read()).count() as ReadIndex
        };
        let in_second = second.first_read..second.first_read + reads_of(&second);
        let in_first = first.first_read..first.first_read + reads_of(&first);
        let to_first = |read: ReadIndex| {
            SymbolicValue::Read(match read {
                read if in_second.contains(&read) => read - second.first_read + first.first_read,
                read if read == old => oldest,
                other => other,
            })
        };
        let is_same_constraint = |one: &Constraint<ReadIndex>, other: &Constraint<ReadIndex>| {
            other.substitute(&to_first) == *one && self.permits_replacement(other, &in_second, old, new)
        };
        in_first.contains(&old)
            && in_second.contains(&new)
            && !in_first.contains(&oldest)
            && first.steps.len() == second.steps.len()
            && first.steps.iter().zip(second.steps).all(|(one, other)| is_same_step(one, other))
            && first.taken_branches == second.taken_branches
            && first.constraints.len() == second.constraints.len()
            && first
                .constraints
                .iter()
                .zip(second.constraints)
                .all(|(one, other)| is_same_constraint(one, other))
    }

    /// Returns the iteration between two positions.
    fn iteration_between(&self, start: PathPosition, end: PathPosition) -> Option<IterationSteps<'_>> {
        let before = self.path.steps.get(..start.steps)?;
        Some(IterationSteps {
            steps: self.path.steps.get(start.steps..end.steps)?,
            constraints: self.path.constraints.get(start.constraints..end.constraints)?,
            taken_branches: self.path.taken_branches.get(start.taken_branches..end.taken_branches)?,
            first_read: before.iter().filter(|step| step.kind.is_read()).count() as ReadIndex,
        })
    }

    /// Returns true if a constraint of an iteration that reads `new` and replaces `old` depends on one of the two, or
    /// requires them to be unequal.
    fn permits_replacement(
        &self,
        constraint: &Constraint<ReadIndex>,
        own_reads: &std::ops::Range<ReadIndex>,
        old: ReadIndex,
        new: ReadIndex,
    ) -> bool {
        let (mut of_own, mut of_old) = (false, false);
        for side in [&constraint.left, &constraint.right] {
            side.for_each_read(&mut |read| {
                of_own |= own_reads.contains(&read);
                of_old |= read == old;
            });
        }
        let is_unequal = constraint.requires_equality() == Some(false);
        let sides = (&constraint.left, &constraint.right);
        let compares_both = sides == (&SymbolicValue::Read(old), &SymbolicValue::Read(new))
            || sides == (&SymbolicValue::Read(new), &SymbolicValue::Read(old));
        !(of_own && of_old) || is_unequal && compares_both && self.compares_whole_values(constraint.scalar)
    }

    /// Returns true if values of every storage that the path reads are equal whenever they compare as equal.
    fn compares_whole_values(&self, scalar: ScalarType) -> bool {
        self.path.steps.iter().all(|step| match &step.kind {
            StepKind::Read(memory) | StepKind::Rmw(memory, _) => memory.extent.bytes * 8 <= scalar.bits(),
            StepKind::Write(..)
            | StepKind::Fence(..)
            | StepKind::ControlBarrier
            | StepKind::SplitBarrier
            | StepKind::Subgroup(_)
            | StepKind::System => true,
        })
    }
}
