//! Compares the paths of threads step by step, up to memory names that are swapped with them.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Access, LocationId, Observable, RegisterId, Term, Test, ThreadId};

use crate::cells::Extent;
use crate::path::{StepAccess, StepKind, ThreadPath, ThreadStep};
use crate::skeleton::ExecutionSemantics;
use crate::symbolic::{ReadIndex, SymbolicValue};

/// The parts of threads that need not match.
pub(super) struct IgnoredParts {
    /// Storages that no thread reads and no condition names: values written there do not matter.
    unread: BTreeSet<LocationId>,
    /// The registers that conditions name.
    named: BTreeSet<RegisterId>,
    /// True if adjacent reads of different storages commute.
    reads_commute: bool,
}

impl IgnoredParts {
    pub(super) fn new(test: &Test, paths: &[Vec<ThreadPath>], semantic: ExecutionSemantics) -> IgnoredParts {
        let mut unread: BTreeSet<LocationId> =
            (0..test.locations.len()).map(|index| test.storage_of(LocationId(index as u16))).collect();
        for step in paths.iter().flatten().flat_map(|path| &path.steps) {
            if let StepKind::Read(memory) | StepKind::Rmw(memory, _) = &step.kind {
                unread.remove(&memory.extent.storage);
            }
        }
        let mut named = BTreeSet::new();
        let mut note = |term: &Term| match term {
            Term::Register(_, register) => {
                named.insert(*register);
            }
            Term::Location(..) | Term::Address(_) | Term::Constant(_) => {}
        };
        test.filter.iter().for_each(|filter| filter.for_each_term(&mut note));
        test.question.iter().for_each(|question| question.condition.for_each_term(&mut note));
        for observable in test.observables() {
            if let Observable::Location(name, _) = observable {
                unread.remove(&test.storage_of(name));
            }
        }
        IgnoredParts { unread, named, reads_commute: semantic.is_shipped_vulkan }
    }

    /// Returns for each step of a path if it is a plain read that nothing depends on.
    fn unused_reads(&self, path: &ThreadPath) -> Vec<bool> {
        let mut used: BTreeSet<ReadIndex> = path.decisive_reads.iter().copied().collect();
        let mut note = |value: &SymbolicValue<ReadIndex>| {
            value.for_each_read(&mut |read| {
                used.insert(read);
            });
        };
        for constraint in &path.constraints {
            note(&constraint.left);
            note(&constraint.right);
        }
        for (register, value) in path.registers.iter().enumerate() {
            if self.named.contains(&RegisterId(register as u16)) {
                note(value);
            }
        }
        for step in &path.steps {
            if let StepKind::Write(_, stored) | StepKind::Rmw(_, Some(stored)) = &step.kind {
                note(stored);
            }
        }
        path.steps.iter().for_each(|step| used.extend(step.address.iter().chain(&step.control)));
        let mut reads = 0;
        let is_unused = path.steps.iter().map(|step| {
            let read = reads;
            reads += ReadIndex::from(step.kind.is_read());
            let plain = matches!(
                &step.kind,
                StepKind::Read(StepAccess {
                    access: Access::NonPrivate | Access::Private | Access::Coherent { .. },
                    ..
                })
            );
            self.reads_commute && plain && !step.cooperative && !step.is_continuation && !used.contains(&read)
        });
        is_unused.collect()
    }

    /// Returns the end of the run of such reads that begins at `from`, in which no storage occurs twice.
    fn commuting_run_end(path: &ThreadPath, is_unused: &[bool], from: usize) -> usize {
        let mut storages = BTreeSet::new();
        let steps = path.steps.iter().zip(is_unused).skip(from);
        let run = steps.take_while(|(step, idle)| match &step.kind {
            StepKind::Read(memory) => **idle && storages.insert(memory.extent.storage),
            _ => false,
        });
        from + run.count()
    }
}

/// A partial bijection of memory names, extended while threads are compared.
pub(super) struct NameMatching<'t> {
    test: &'t Test,
    ignored: &'t IgnoredParts,
    pub(super) swapped: BTreeMap<LocationId, LocationId>,
    /// Runs of commuting reads; both runs of a pair must read the same storages, in any order.
    read_runs: Vec<[&'t [ThreadStep]; 2]>,
}

/// The attributes of a step except its kind.
type StepContext<'s> = (u16, bool, bool, &'s [ReadIndex], &'s [ReadIndex]);

fn step_context(step: &ThreadStep) -> StepContext<'_> {
    (step.occurrence, step.cooperative, step.is_continuation, &step.address, &step.control)
}

impl<'t> NameMatching<'t> {
    pub(super) fn new(test: &'t Test, ignored: &'t IgnoredParts) -> NameMatching<'t> {
        NameMatching { test, ignored, swapped: BTreeMap::new(), read_runs: Vec::new() }
    }

    /// Records that two names are swapped; `None` if one of them is swapped with another name.
    fn match_names(&mut self, from: LocationId, to: LocationId) -> Option<()> {
        // A swap is its own inverse, so both directions are recorded.
        let there = *self.swapped.entry(from).or_insert(to);
        let back = *self.swapped.entry(to).or_insert(from);
        (there == to && back == from).then_some(())
    }

    pub(super) fn match_paths(
        &mut self,
        (thread, path): (usize, &'t ThreadPath),
        (other, with): (usize, &'t ThreadPath),
    ) -> Option<()> {
        let named = |path: &ThreadPath| {
            let all = path.registers.iter().enumerate();
            let named =
                all.filter(|(register, _)| self.ignored.named.contains(&RegisterId(*register as u16)));
            named.map(|(register, value)| (register, value.clone())).collect::<Vec<_>>()
        };
        let same = path.steps.len() == with.steps.len()
            && path.constraints == with.constraints
            && named(path) == named(with)
            && (path.terminated, path.truncated) == (with.terminated, with.truncated)
            && path.decisive_reads == with.decisive_reads;
        if !same {
            return None;
        }
        let (is_unused, is_unused_in_other) =
            (self.ignored.unused_reads(path), self.ignored.unused_reads(with));
        let mut at = 0;
        while let (Some(step), Some(other_step)) = (path.steps.get(at), with.steps.get(at)) {
            let end = IgnoredParts::commuting_run_end(path, &is_unused, at);
            // Reads that commute need not be in the same order; they are compared as sets once
            // the names are known.
            if end > at + 1 && end == IgnoredParts::commuting_run_end(with, &is_unused_in_other, at) {
                self.read_runs.push([&path.steps[at..end], &with.steps[at..end]]);
                at = end;
            } else {
                self.match_steps((thread, step), (other, other_step))?;
                at += 1;
            }
        }
        Some(())
    }

    /// Matches the recorded runs of reads, once all swapped names are known.
    pub(super) fn match_runs(&mut self) -> Option<()> {
        for [run, other] in std::mem::take(&mut self.read_runs) {
            let mut remaining: Vec<&ThreadStep> = other.iter().collect();
            for step in run {
                let StepKind::Read(from) = &step.kind else { return None };
                let name = *self.swapped.get(&from.location).unwrap_or(&from.location);
                let found = remaining.iter().position(|other| match &other.kind {
                    StepKind::Read(to) => {
                        to.location == name
                            && is_same_access(from, to)
                            && step_context(step) == step_context(other)
                    }
                    _ => false,
                });
                // Each read has its own partner.
                remaining.swap_remove(found?);
            }
        }
        Some(())
    }

    fn match_steps(
        &mut self,
        (thread, step): (usize, &ThreadStep),
        (other, with): (usize, &ThreadStep),
    ) -> Option<()> {
        if step_context(step) != step_context(with) {
            return None;
        }
        match (&step.kind, &with.kind) {
            (StepKind::Read(from), StepKind::Read(to)) => self.match_memory(from, to),
            // Values that nothing observes need not agree.
            (StepKind::Write(from, stored), StepKind::Write(to, other))
                if stored == other || self.is_unread(from, stored) && self.is_unread(to, other) =>
            {
                self.match_memory(from, to)
            }
            (StepKind::Rmw(from, stored), StepKind::Rmw(to, other)) if stored == other => {
                self.match_memory(from, to)
            }
            (StepKind::Fence(scope, semantics), StepKind::Fence(other, with)) => {
                (scope == other && semantics == with).then_some(())
            }
            (StepKind::ControlBarrier, StepKind::ControlBarrier)
            | (StepKind::SplitBarrier, StepKind::SplitBarrier) => {
                let barrier = |thread: usize, step: &ThreadStep| {
                    let thread = self.test.thread(ThreadId(thread as u16));
                    thread.instructions.get(usize::from(step.instruction)).map(|i| &i.kind)
                };
                (barrier(thread, step) == barrier(other, with)).then_some(())
            }
            _ => None,
        }
    }

    fn match_memory(&mut self, from: &StepAccess, to: &StepAccess) -> Option<()> {
        self.match_names(from.location, to.location).filter(|()| is_same_access(from, to))
    }

    /// Returns true if no thread or condition can observe a known stored value.
    fn is_unread(&self, memory: &StepAccess, stored: &SymbolicValue<ReadIndex>) -> bool {
        stored.known_value().is_some() && self.ignored.unread.contains(&memory.extent.storage)
    }
}

/// Returns true if two accesses differ at most in their names.
fn is_same_access(from: &StepAccess, to: &StepAccess) -> bool {
    let part = |Extent { offset, bytes, is_whole, .. }: Extent| (offset, bytes, is_whole);
    (from.class, from.access) == (to.class, to.access) && part(from.extent) == part(to.extent)
}
