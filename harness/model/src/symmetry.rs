//! Thread symmetry reduction: explores one representative of each orbit of interchangeable threads.
//!
//! A swap of two threads, subgroups, workgroups or queue families is a symmetry of a test under one
//! condition. Each of their threads must have the paths of its counterpart, up to memory names that are
//! swapped too. Executions form orbits under the combinations of swaps. All executions of an orbit have the
//! same races and answers, so one representative per orbit is enough.
//!
//! If no scope is as narrow as a subgroup, or as a workgroup, the Vulkan model does not depend on the
//! placement of threads in these. Then all threads may be swapped, not only those of one group. The model
//! refers to subgroups and workgroups only in links of availability and visibility chains, and in the domains
//! that these reach. Operations of device scope are in all narrower instances too (`in-subgroup`,
//! `in-workgroup`). So each such link is also a link of the queue family, and each domain is contained in the
//! device's. Links of narrower operations extend chains that links of the queue family do not (`in-device`).
//! But if all semantics name the same storage classes, such a chain is one happens-before edge by these
//! classes. Its first link then reaches as far as its last (VK-AVC-01, VK-AVC-02, VK-VISC-01, VK-VISC-02,
//! VK-AVSEM-07). The execution scope of a control barrier determines the invocations that it joins.
//!
//! Adjacent non-atomic reads of different storages commute if nothing depends on the values that they return.
//! An example is a thread that reads a sequence of results of other threads.
//! Vulkan's model uses program order only for three sets of pairs: pairs of one location; pairs with an end
//! that has semantics, or is an API operation or a shader call; and pairs that begin at a write, to find an
//! availability operation.

mod name_matching;

use std::collections::BTreeMap;

use litmus::{
    Access, Comparison, Condition, InstructionKind, Location, LocationId, Observable, Order, Placement,
    Scope, Semantics, StorageClassSet, Term, Test, ThreadId, ThreadPlace,
};

use self::name_matching::{IgnoredParts, NameMatching};
use crate::path::{PathChoice, StepKind, ThreadPath};
use crate::quick::QuickSet;
use crate::skeleton::{ExecutionSemantics, Owner, Skeleton, Tags};

/// Limit of compared steps over all paths.
const MAX_COMPARED_STEPS: usize = 4_000;

/// The symmetries of a test, as generating swaps.
#[derive(Debug, Default)]
pub struct ThreadSymmetry {
    /// The generating swaps.
    pub swaps: Vec<BlockSwap>,
    /// True if every swap preserves the condition of the question.
    pub preserves_condition: bool,
}

/// Two blocks of threads that may be swapped, thread by thread.
#[derive(Debug)]
pub struct BlockSwap {
    /// The threads of the two blocks.
    pub blocks: [Vec<usize>; 2],
    /// The memory names that are swapped with them, in both directions.
    names: BTreeMap<LocationId, LocationId>,
}

/// Symmetry breaking for one event structure: pairs of writes to one storage whose first write may be
/// required to precede the second.
#[derive(Debug, Default)]
pub(crate) struct SymmetryBreaking {
    pub(crate) ordered_writes: Vec<(usize, usize)>,
    /// True if every swap preserves the condition of the question.
    pub(crate) preserves_condition: bool,
}

impl ThreadSymmetry {
    /// Finds the symmetries of a test whose threads have these paths. Parts that the model ignores are not
    /// compared.
    pub fn new(test: &Test, paths: &[Vec<ThreadPath>], semantic: ExecutionSemantics) -> ThreadSymmetry {
        let mut symmetry = ThreadSymmetry { swaps: Vec::new(), preserves_condition: true };
        // A lane's number can be observed, so lanes are never swapped.
        let is_plain = |path: &ThreadPath| {
            path.steps.iter().all(|step| !matches!(step.kind, StepKind::System | StepKind::Subgroup(_)))
        };
        let plain = test.system_sync.is_empty() && test.khronos.is_none();
        let steps: usize = paths.iter().flatten().map(|path| path.steps.len() + 1).sum();
        if !plain || steps > MAX_COMPARED_STEPS || !paths.iter().flatten().all(is_plain) {
            return symmetry;
        }
        let mut places: Vec<Placement> = Vec::new();
        for thread in &test.threads {
            match thread.place {
                ThreadPlace::Device(place) => places.push(place),
                ThreadPlace::Host => return symmetry,
            }
        }
        // Placement below the narrowest scope is immaterial (see the module), so the threads are
        // treated as if in one group.
        if semantic.has_scope_symmetry {
            let narrowest = narrowest_scope(test, paths);
            for place in &mut places {
                place.workgroup = if narrowest > Scope::Workgroup { 0 } else { place.workgroup };
                place.subgroup = if narrowest > Scope::Subgroup { 0 } else { place.subgroup };
            }
        }
        // The levels of the hierarchy: thread, subgroup, workgroup, queue family. The key of the
        // next level names the parent.
        let keys: [&dyn Fn(usize) -> [u32; 4]; 4] = [
            &|thread| {
                let place = places[thread];
                [place.queue_family, place.workgroup, place.subgroup, thread as u32]
            },
            &|thread| [places[thread].queue_family, places[thread].workgroup, places[thread].subgroup, 0],
            &|thread| [places[thread].queue_family, places[thread].workgroup, 0, 0],
            &|thread| [places[thread].queue_family, 0, 0, 0],
        ];
        let ignored = IgnoredParts::new(test, paths, semantic);
        for (level, key) in keys.iter().enumerate() {
            let mut units: BTreeMap<[u32; 4], Vec<usize>> = BTreeMap::new();
            (0..places.len()).for_each(|thread| units.entry(key(thread)).or_default().push(thread));
            // Adjacent interchangeable units of one parent, each swapped with its predecessor.
            let mut classes: Vec<(Option<[u32; 4]>, Vec<usize>)> = Vec::new();
            for unit in units.into_values() {
                let parent = keys.get(level + 1).and_then(|key| Some(key(*unit.first()?)));
                let swap = classes.iter_mut().filter(|(other, _)| *other == parent).find_map(|(_, last)| {
                    let swap = find_swap(test, paths, (&places, &ignored), last, &unit)?;
                    // Swaps of neighbours in a chain generate all permutations of it, so each unit
                    // is compared with one other only.
                    *last = unit.clone();
                    Some(swap)
                });
                match swap {
                    Some(swap) => symmetry.swaps.push(swap),
                    None => classes.push((parent, unit)),
                }
            }
        }
        let observed: Vec<Observable> = test.observables();
        symmetry.swaps.retain(|swap| {
            swap.preserves_condition(test.filter.as_ref()) && swap.preserves_observables(&observed)
        });
        let condition = test.question.as_ref().map(|question| &question.condition);
        symmetry.preserves_condition = symmetry.swaps.iter().all(|swap| swap.preserves_condition(condition));
        symmetry
    }

    /// Returns true if the test has no symmetry.
    pub(crate) fn is_empty(&self) -> bool {
        self.swaps.is_empty()
    }

    /// Returns chains of threads, each interchangeable with its predecessor.
    fn interchangeable_chains(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for BlockSwap { blocks, .. } in &self.swaps {
            if let [[left], [right]] = blocks.each_ref().map(Vec::as_slice) {
                match rows.iter_mut().find(|row| row.last() == Some(left)) {
                    Some(row) => row.push(*right),
                    None => rows.push(vec![*left, *right]),
                }
            }
        }
        rows
    }

    /// Visits one representative of each orbit under swaps of single threads, with the orbit's size, while
    /// `visit` returns true.
    ///
    /// `path_counts` has the number of paths of each thread; `is_included` excludes combinations.
    pub(crate) fn for_each_representative<E>(
        &self,
        path_counts: &[usize],
        is_included: &dyn Fn(&[PathChoice]) -> bool,
        visit: &mut impl FnMut(&[usize], u64) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut rows = self.interchangeable_chains();
        for thread in 0..path_counts.len() {
            if !rows.iter().flatten().any(|known| *known == thread) {
                rows.push(vec![thread]);
            }
        }
        let order: Vec<(usize, bool)> = rows
            .iter()
            .flat_map(|row| row.iter().enumerate().map(|(at, thread)| (*thread, at + 1 == row.len())))
            .collect();
        // Each thread in turn takes a path; later threads of its row take the same path or a later one.
        let mut taken = vec![PathChoice::From(0); path_counts.len()];
        let mut at = 0;
        let mut next = 0;
        loop {
            let Some(&(thread, ends)) = order.get(at) else {
                let chosen: Vec<usize> = taken.iter().map(|taken| taken.first_path()).collect();
                let count =
                    rows.iter().fold(1u64, |all, row| all.saturating_mul(count_assignments(row, &chosen)));
                if !visit(&chosen, count)? || at == 0 {
                    return Ok(());
                }
                at -= 1;
                // Backtracks: the last thread of the order tries its next path.
                next = chosen[order[at].0] + 1;
                continue;
            };
            let later_threads: Vec<usize> = match rows.iter().find(|row| row.contains(&thread)) {
                Some(row) => row.iter().copied().skip_while(|other| *other != thread).skip(1).collect(),
                None => Vec::new(),
            };
            let path = (next..path_counts[thread]).find(|path| {
                taken[thread] = PathChoice::Path(*path);
                later_threads.iter().for_each(|other| taken[*other] = PathChoice::From(*path));
                is_included(&taken)
            });
            match path {
                Some(path) => {
                    at += 1;
                    // Paths do not decrease along a row: the sorted assignment represents its
                    // orbit.
                    next = if ends { 0 } else { path };
                }
                None => {
                    taken[thread] = PathChoice::From(0);
                    later_threads.iter().for_each(|other| taken[*other] = PathChoice::From(0));
                    let Some(before) = at.checked_sub(1) else { return Ok(()) };
                    at = before;
                    next = taken[order[at].0].first_path() + 1;
                }
            }
        }
    }

    /// Visits the path combinations in the orbit of `chosen`, itself first, until `visit` returns false.
    pub(crate) fn for_each_in_orbit<E>(
        &self,
        chosen: &[usize],
        visit: &mut impl FnMut(&[usize]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut known: QuickSet<Vec<usize>> = QuickSet::default();
        let mut open = vec![chosen.to_vec()];
        known.insert(chosen.to_vec());
        while let Some(chosen) = open.pop() {
            if !visit(&chosen)? {
                return Ok(());
            }
            for BlockSwap { blocks: [left, right], .. } in &self.swaps {
                let mut other = chosen.clone();
                left.iter().zip(right).for_each(|(a, b)| other.swap(*a, *b));
                if known.insert(other.clone()) {
                    open.push(other);
                }
            }
        }
        Ok(())
    }

    /// Returns the lexicographically smallest combination of paths in the orbit that pairwise swaps reach.
    pub(crate) fn orbit_representative(&self, chosen: &[usize]) -> Vec<usize> {
        let mut first = chosen.to_vec();
        let mut changed = true;
        while changed {
            changed = false;
            for BlockSwap { blocks: [left, right], .. } in &self.swaps {
                let paths = |block: &[usize]| block.iter().map(|thread| first[*thread]).collect::<Vec<_>>();
                if paths(right) < paths(left) {
                    left.iter().zip(right).for_each(|(a, b)| first.swap(*a, *b));
                    changed = true;
                }
            }
        }
        first
    }

    /// Returns the symmetry breaking of an event structure whose threads take these paths.
    pub(crate) fn symmetry_breaking_for(&self, chosen: &[usize], skeleton: &Skeleton) -> SymmetryBreaking {
        let mut ordered = Vec::new();
        for BlockSwap { blocks: [left, right], names } in &self.swaps {
            // If the blocks take different paths, the swap leads to another event structure and
            // orders nothing in this one.
            if !left.iter().zip(right).all(|(a, b)| chosen[*a] == chosen[*b]) {
                continue;
            }
            let events = |thread: Option<&usize>| -> Vec<usize> {
                let Some(thread) = thread else { return Vec::new() };
                let owner = Owner::Thread(ThreadId(*thread as u16));
                (0..skeleton.len()).filter(|event| skeleton.events[*event].owner == owner).collect()
            };
            let pairs = events(left.first()).into_iter().zip(events(right.first()));
            // One write to a name that the swap leaves in place. An RMW is preferred, since each RMW of a
            // chain reads from its predecessor.
            let candidates = pairs.filter(|(a, b)| {
                let (a, b) = (&skeleton.events[*a], &skeleton.events[*b]);
                let stays = a.reference.is_some_and(|name| !names.contains_key(&name));
                a.tags.has(Tags::W) && stays && a.storage == b.storage
            });
            let candidates: Vec<(usize, usize)> = candidates.collect();
            let rmw = candidates.iter().find(|(a, _)| skeleton.events[*a].tags.has(Tags::RMW));
            ordered.extend(rmw.or(candidates.first()));
        }
        SymmetryBreaking { ordered_writes: ordered, preserves_condition: self.preserves_condition }
    }
}

/// Counts the distinct assignments of the chosen paths to the threads of a row.
fn count_assignments(row: &[usize], chosen: &[usize]) -> u64 {
    let mut paths: Vec<usize> = row.iter().map(|thread| chosen[*thread]).collect();
    paths.sort_unstable();
    // Multinomial coefficient: equal paths take some of the remaining positions.
    let (mut orders, mut places) = (1u128, 0u128);
    for equal_paths in paths.chunk_by(|a, b| a == b) {
        for taken in 1..=equal_paths.len() as u128 {
            places += 1;
            orders = orders.saturating_mul(places) / taken;
        }
    }
    u64::try_from(orders).unwrap_or(u64::MAX)
}

impl BlockSwap {
    /// Returns true if both or none of two swapped names are observed.
    fn preserves_observables(&self, observed: &[Observable]) -> bool {
        observed.iter().all(|observable| match observable {
            Observable::Location(name, component) => {
                let other = *self.names.get(name).unwrap_or(name);
                observed.contains(&Observable::Location(other, *component))
            }
            Observable::Register(..) => true,
        })
    }

    /// Returns true if the swap preserves a condition.
    fn preserves_condition(&self, condition: Option<&Condition>) -> bool {
        let Some(condition) = condition else { return true };
        let same = |term: &Term| term.clone();
        canonical_form(condition, &same) == canonical_form(condition, &|term| self.swap_term(term))
    }

    fn swap_term(&self, term: &Term) -> Term {
        match term {
            Term::Register(thread, register) => Term::Register(self.swap_thread(*thread), *register),
            Term::Location(location, component) => Term::Location(self.swap_location(*location), *component),
            Term::Address(_) | Term::Constant(_) => term.clone(),
        }
    }

    fn swap_location(&self, name: LocationId) -> LocationId {
        *self.names.get(&name).unwrap_or(&name)
    }

    /// Returns the thread that replaces another after the swap.
    fn swap_thread(&self, thread: ThreadId) -> ThreadId {
        let [left, right] = &self.blocks;
        let index = usize::from(thread.0);
        let other = left.iter().zip(right).find_map(|(a, b)| match index {
            index if index == *a => Some(*b),
            index if index == *b => Some(*a),
            _ => None,
        });
        other.map_or(thread, |other| ThreadId(other as u16))
    }
}

/// Returns a condition over substituted terms as text, independent of the order of conjuncts and disjuncts.
fn canonical_form(condition: &Condition, term: &dyn Fn(&Term) -> Term) -> String {
    fn collect_operands(
        condition: &Condition,
        and: bool,
        term: &dyn Fn(&Term) -> Term,
        all: &mut Vec<String>,
    ) {
        match (condition, and) {
            (Condition::And(left, right), true) | (Condition::Or(left, right), false) => {
                collect_operands(left, and, term, all);
                collect_operands(right, and, term, all);
            }
            _ => all.push(canonical_form(condition, term)),
        }
    }
    match condition {
        Condition::True => "true".to_owned(),
        Condition::Compare { left, comparison, right } => {
            let (left, right) = (format!("{:?}", term(left)), format!("{:?}", term(right)));
            // Only these two comparisons stay the same if their operands change places.
            let (left, right) = match comparison {
                Comparison::Equal | Comparison::NotEqual if right < left => (right, left),
                _ => (left, right),
            };
            format!("({left} {comparison:?} {right})")
        }
        Condition::And(..) | Condition::Or(..) => {
            let and = matches!(condition, Condition::And(..));
            let mut all = Vec::new();
            collect_operands(condition, and, term, &mut all);
            // A chain of one connective means the same in every order and nesting.
            all.sort_unstable();
            format!("{}({})", if and { "and" } else { "or" }, all.join(", "))
        }
        Condition::Not(inner) => format!("not {}", canonical_form(inner, term)),
    }
}

/// Returns the swap of two blocks of threads if it is a symmetry of the program.
fn find_swap(
    test: &Test,
    paths: &[Vec<ThreadPath>],
    (places, ignored): (&[Placement], &IgnoredParts),
    left: &[usize],
    right: &[usize],
) -> Option<BlockSwap> {
    if left.len() != right.len() || group_membership(places, left) != group_membership(places, right) {
        return None;
    }
    let mut names = NameMatching::new(test, ignored);
    for thread in 0..paths.len() {
        let other = |from: &[usize], to: &[usize]| {
            from.iter().position(|t| *t == thread).and_then(|at| to.get(at).copied())
        };
        let other = other(left, right).or_else(|| other(right, left)).unwrap_or(thread);
        if paths[thread].len() != paths[other].len() {
            return None;
        }
        for (path, of_other) in paths[thread].iter().zip(&paths[other]) {
            names.match_paths((thread, path), (other, of_other))?;
        }
    }
    names.match_runs()?;
    let moved: BTreeMap<LocationId, LocationId> =
        names.swapped.iter().filter(|(from, to)| from != to).map(|(from, to)| (*from, *to)).collect();
    let has_one_name = |name: &LocationId| {
        let names = (0..test.locations.len()).map(|index| LocationId(index as u16));
        names.filter(|other| test.storage_of(*other) == test.storage_of(*name)).count() == 1
    };
    // The declarations must be interchangeable too. An aliased name also has other names, which the
    // swap would have to move.
    let is_interchangeable = |(from, to): (&LocationId, &LocationId)| {
        let attributes = |name: LocationId| {
            let Location { reference, scalar, components, host, noncoherent, .. } = test.location(name);
            (reference, scalar, components, host, noncoherent)
        };
        let value = |name, component| (test.has_undefined_init(name), test.initial_value(name, component));
        let components = 0..test.location(*from).components;
        attributes(*from) == attributes(*to)
            && has_one_name(from)
            && components.into_iter().all(|component| value(*from, component) == value(*to, component))
    };
    let blocks = [left.to_vec(), right.to_vec()];
    moved.iter().all(is_interchangeable).then_some(BlockSwap { blocks, names: moved })
}

/// Returns the narrowest scope for which thread placement matters: invocation scope if an instruction
/// observes placement.
fn narrowest_scope(test: &Test, paths: &[Vec<ThreadPath>]) -> Scope {
    let mut narrowest = Scope::CrossDevice;
    let mut classes: Vec<StorageClassSet> = Vec::new();
    let mut add_scope = |scope: Scope, semantics: Option<&Semantics>| {
        narrowest = match scope {
            // These scopes contain parts of subgroups and workgroups.
            Scope::ShaderCall | Scope::FragmentInterlock => Scope::Invocation,
            _ => narrowest.min(scope),
        };
        let ordering = semantics.filter(|semantics| semantics.order != Order::Relaxed);
        classes
            .extend(ordering.map(|ordering| ordering.classes).filter(|all| *all != StorageClassSet::EMPTY));
    };
    for (thread, paths) in paths.iter().enumerate() {
        let instructions = &test.thread(ThreadId(thread as u16)).instructions;
        for step in paths.iter().flat_map(|path| &path.steps) {
            match &step.kind {
                StepKind::Read(memory) | StepKind::Write(memory, _) | StepKind::Rmw(memory, _) => {
                    match &memory.access {
                        Access::Private | Access::NonPrivate => {}
                        Access::Coherent { scope } => add_scope(*scope, None),
                        Access::Atomic { scope, semantics } => add_scope(*scope, Some(semantics)),
                    }
                }
                StepKind::Fence(scope, semantics) => add_scope(*scope, Some(semantics)),
                StepKind::ControlBarrier | StepKind::SplitBarrier => {
                    match instructions.get(usize::from(step.instruction)).map(|i| &i.kind) {
                        Some(InstructionKind::ControlBarrier(barrier)) => {
                            add_scope(barrier.execution_scope, None);
                            add_scope(barrier.memory_scope, barrier.semantics.as_ref());
                        }
                        _ => add_scope(Scope::Invocation, None),
                    }
                }
                StepKind::Subgroup(_) | StepKind::System => add_scope(Scope::Invocation, None),
            }
        }
    }
    // Not sorted: one entry is left if and only if all are equal.
    classes.dedup();
    if narrowest >= Scope::Device || classes.len() <= 1 { narrowest } else { Scope::Invocation }
}

/// Returns which of the threads share a workgroup, and which a subgroup.
fn group_membership(places: &[Placement], threads: &[usize]) -> Vec<[bool; 2]> {
    let shares = |one: usize, other: usize| {
        [Scope::Workgroup, Scope::Subgroup]
            .map(|scope| places[one].scope_instance(scope) == places[other].scope_instance(scope))
    };
    threads.iter().flat_map(|one| threads.iter().map(move |other| shares(*one, *other))).collect()
}
