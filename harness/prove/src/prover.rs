//! The obligations of a proof: barriers in uniform control flow, and no conflict between two arbitrary invocations.
//!
//! Long because each kind of obligation builds its queries from the same instances of terms.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::spirv::BuiltIn;
use rustc_hash::FxHashMap;
use spirv_reader::{SourcePosition, SpirvType};
use vocabulary::{Scope, StorageClass};

use crate::bounds::UpperBounds;
use crate::decide::{Decision, Products, Question, SMALL_INPUTS, SmallInputs, TermModel, decide};
use crate::execute::{Access, Barrier, Location, Strength, Summary};
use crate::intervals::{Crossing, Interval, Visit, intervals};
use crate::names::variable_name;
use crate::radix::radix_facts;
use crate::refusal::{Unproved, UnprovedReason};
use crate::smt::{SmtSolver, ask};
use crate::term::{FunctionId, FunctionKind, Operator, Substitution, TermArena, TermId, Uniformity};

/// Upper bound on the pairs of accesses of a proof.
const MAX_PAIRS: usize = 40_000;
/// Upper bounds on the steps of one query, and of one with products.
const STEPS_OF_QUERY: u64 = 60_000;
const STEPS_OF_PRODUCTS: u64 = 40_000;
/// Upper bound on the terms that are left out one after the other.
const MAX_EXACT: usize = 12;

/// The meaning of a condition on the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Term(TermId),
    /// Different elements of a read-only variable differ.
    DistinctContents(u32),
}

/// The two invocations of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PairKind {
    SameWorkgroup,
    DifferentWorkgroups,
}

impl PairKind {
    /// Returns the uniformity of the values that both invocations share.
    fn shared(self) -> Uniformity {
        match self {
            PairKind::SameWorkgroup => Uniformity::Workgroup,
            PairKind::DifferentWorkgroups => Uniformity::Grid,
        }
    }
}

/// A question whether terms can hold together, about two instructions.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub conjuncts: Vec<TermId>,
    /// The part of the conjuncts under which both instructions are executed.
    pub execution: Vec<TermId>,
    /// The offsets of the accesses.
    pub offsets: Vec<TermId>,
    /// Products and sums of the two invocations that may wrap, with those of the summary.
    pub inexact: Vec<(TermId, TermId)>,
    pub reason: UnprovedReason,
    pub spots: [(u32, SourcePosition); 2],
    pub kind: PairKind,
}

impl Query {
    /// Returns a question about one invocation.
    fn of(conjuncts: Vec<TermId>) -> Query {
        Query {
            conjuncts,
            execution: Vec::new(),
            offsets: Vec::new(),
            inexact: Vec::new(),
            reason: UnprovedReason::Budget,
            spots: [(0, SourcePosition::Module); 2],
            kind: PairKind::SameWorkgroup,
        }
    }
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Proved,
    /// It holds if these products and sums do not wrap.
    ProvedIfExact(Vec<TermId>),
    Refuted(TermModel),
    Open,
}

/// Replaces the symbols of one invocation by those of the other.
struct InstanceSubstitution<'a> {
    /// Values of at most this uniformity are shared.
    shared: Uniformity,
    is_second: bool,
    iterations: &'a FxHashMap<FunctionId, TermId>,
    seconds: &'a mut FxHashMap<FunctionId, FunctionId>,
}

impl Substitution for InstanceSubstitution<'_> {
    fn apply(&mut self, terms: &mut TermArena, function: FunctionId, arguments: &[TermId]) -> Option<TermId> {
        if let Some(iteration) = self.iterations.get(&function) {
            return Some(*iteration);
        }
        if !self.is_second || terms.function(function).uniformity <= self.shared {
            return None;
        }
        let second = second_function(terms, self.seconds, function);
        Some(terms.apply(second, arguments))
    }
}

/// Returns the function of the second invocation for one of the first.
fn second_function(
    terms: &mut TermArena,
    seconds: &mut FxHashMap<FunctionId, FunctionId>,
    function: FunctionId,
) -> FunctionId {
    if let Some(known) = seconds.get(&function) {
        return *known;
    }
    let mut copy = terms.function(function).clone();
    (copy.original, copy.sources) = (Some(function), Vec::new());
    let second = terms.add_function(copy);
    seconds.insert(function, second);
    second
}

/// A proof in progress.
pub(crate) struct Prover<'m> {
    pub summary: Summary<'m>,
    /// The functions of the second invocation.
    seconds: FxHashMap<FunctionId, FunctionId>,
    /// The number of workgroups of each dimension, if it is fixed.
    pub grid: [Option<u32>; 3],
    /// Products and sums of loop-carried numbers that do not wrap.
    pub exact: BTreeSet<TermId>,
    /// Conditions that hold for the whole grid.
    pub conditions: Vec<Claim>,
    /// Arrays whose indices are assumed to be in bounds.
    pub bounded: BTreeSet<String>,
    /// True if a query under a candidate for a condition had no answer.
    pub is_inconclusive: bool,
    pub steps: u64,
    /// True if an answer depends on counters that do not wrap.
    pub uses_tickets: bool,
    /// True if an answer depends on one elected lane in each subgroup.
    pub uses_elections: bool,
    /// Atomic accesses, by index, and whether nothing but additions changes what they access.
    counters: FxHashMap<usize, bool>,
    /// An installed solver for what the built-in one leaves open.
    pub solver: Option<SmtSolver<'m>>,
    /// True if the installed solver has decided a question.
    pub has_used_solver: bool,
    /// Why the installed solver gives no more answers.
    pub solver_failure: Option<String>,
}

impl<'m> Prover<'m> {
    pub fn new(
        summary: Summary<'m>,
        grid: [Option<u32>; 3],
        steps: u64,
        solver: Option<SmtSolver<'m>>,
    ) -> Prover<'m> {
        Prover {
            summary,
            seconds: FxHashMap::default(),
            grid,
            exact: BTreeSet::new(),
            conditions: Vec::new(),
            bounded: BTreeSet::new(),
            is_inconclusive: false,
            steps,
            uses_tickets: false,
            uses_elections: false,
            counters: FxHashMap::default(),
            solver,
            has_used_solver: false,
            solver_failure: None,
        }
    }

    fn terms(&mut self) -> &mut TermArena {
        &mut self.summary.terms
    }

    /// Returns the terms as one of the two invocations computes them.
    fn instance(
        &mut self,
        roots: &[TermId],
        shared: Uniformity,
        is_second: bool,
        iterations: &FxHashMap<FunctionId, TermId>,
    ) -> Vec<TermId> {
        let mut by = InstanceSubstitution { shared, is_second, iterations, seconds: &mut self.seconds };
        let mut memo = FxHashMap::default();
        let terms = &mut self.summary.terms;
        roots.iter().map(|root| terms.substitute(*root, &mut memo, &mut by)).collect()
    }

    /// Returns the products and sums in terms that may wrap, as an invocation computes them, with those of the summary.
    fn inexact_terms(
        &mut self,
        roots: &[TermId],
        shared: Uniformity,
        is_second: bool,
        iterations: &FxHashMap<FunctionId, TermId>,
    ) -> Vec<(TermId, TermId)> {
        let own = inexact_terms(&self.summary.terms, roots);
        self.instance(&own, shared, is_second, iterations).into_iter().zip(own).collect()
    }

    /// Returns the iterations of one invocation: those of loops around an access by their crossings, others its own.
    fn iterations(
        &mut self,
        is_second: bool,
        around: &[usize],
        crossings: &[Crossing],
    ) -> FxHashMap<FunctionId, TermId> {
        let mut all = FxHashMap::default();
        for index in 0..self.summary.iterations.len() {
            let function = self.summary.iterations[index];
            let depth = around.iter().position(|one| *one == index);
            let crossing = depth.and_then(|depth| crossings.get(depth));
            let iteration = crossing.and_then(|crossing| self.iteration_at(index, *crossing));
            let iteration = iteration.unwrap_or_else(|| {
                // It differs from an iteration that both share.
                let terms = &mut self.summary.terms;
                let mut own = second_function(terms, &mut self.seconds, function);
                if !is_second {
                    own = second_function(terms, &mut self.seconds, own);
                }
                terms.apply(own, &[])
            });
            all.insert(function, iteration);
        }
        all
    }

    /// Returns the iteration of a loop at a crossing; `None` for any.
    fn iteration_at(&mut self, index: usize, crossing: Crossing) -> Option<TermId> {
        let terms = &mut self.summary.terms;
        let current = terms.apply(self.summary.iterations[index], &[]);
        match crossing {
            Crossing::Same => Some(current),
            Crossing::Next => Some(terms.sum(32, &[(current, 1)], 1)),
            Crossing::First => Some(terms.constant(32, 0)),
            Crossing::Free => None,
        }
    }

    /// Finds loop-carried numbers that do not wrap: by induction, if no step from one iteration to the next wraps.
    ///
    /// An access that every iteration executes is in bounds, so its offset is below the limit of a descriptor's range.
    pub fn find_exact_forms(&mut self) {
        for form in self.summary.closed_forms.clone() {
            let value = form.terms[0];
            let initial = form.terms[3];
            let starts_exact = self.summary.terms.is_exact(initial) || self.exact.contains(&initial);
            if self.summary.terms.width(value) != 32 || self.summary.terms.is_exact(value) || !starts_exact {
                continue;
            }
            let one = &self.summary.graph.loops[form.index];
            let back: Vec<usize> = one
                .body
                .iter()
                .copied()
                .filter(|node| self.summary.graph.nodes[*node].successors.contains(&one.header))
                .collect();
            let mut conjuncts = vec![self.summary.loop_continues[form.index]];
            let limit = self.summary.terms.constant(64, 1 << 32);
            for access in self.summary.accesses.clone() {
                let graph = &self.summary.graph;
                let is_always = graph.loop_of[access.node] == Some(form.index)
                    && back.iter().all(|back| graph.dominates(access.node, *back));
                if let (Location::Bytes { offset, .. }, true) = (access.location, is_always) {
                    conjuncts.push(self.summary.terms.binary(Operator::Less, offset, limit));
                }
            }
            let terms = &mut self.summary.terms;
            let wraps = match terms.signed_constant(form.step) {
                Some(step) if step < 0 => {
                    let least = terms.constant(32, step.unsigned_abs());
                    terms.binary(Operator::Less, value, least)
                }
                _ => {
                    let (wide, step) = (terms.extend(value, 64, false), terms.extend(form.step, 64, false));
                    let (next, limit) = (terms.add(wide, step), terms.constant(64, 1 << 32));
                    let fits = terms.binary(Operator::Less, next, limit);
                    terms.not(fits)
                }
            };
            conjuncts.push(wraps);
            let query = Query::of(conjuncts);
            let facts = self.side_facts(&query);
            let all: Vec<TermId> = query.conjuncts.iter().chain(&facts).copied().collect();
            if let Decision::Impossible = self.decide(&all, Products::Abstract, &[], STEPS_OF_QUERY) {
                self.exact.extend(&form.terms[..3]);
            }
        }
    }

    /// Returns the queries of barriers that some invocations may not reach.
    ///
    /// Both invocations pass all earlier iterations of the loops around a barrier: the first divergence is sought.
    pub fn barrier_queries(&mut self) -> Vec<Query> {
        let mut queries = Vec::new();
        for Barrier { reach, history, line, place, node, .. } in self.summary.barriers.clone() {
            let around = self.summary.graph.loops_around(node);
            let mut conditions = vec![(reach, None)];
            // A loop around the barrier must end for all invocations at once, unless none reaches the barrier later.
            conditions.extend(
                around
                    .iter()
                    .enumerate()
                    .map(|(depth, index)| (self.summary.loop_conditions[*index], Some(depth))),
            );
            for (condition, depth) in conditions {
                if self.summary.terms.uniformity_of(&[condition]) <= Uniformity::Workgroup {
                    continue;
                }
                let none = FxHashMap::default();
                let second = self.instance(&[condition, history], Uniformity::Workgroup, true, &none);
                let not = self.terms().not(second[0]);
                let distinct = self.distinct_invocations();
                let mut conjuncts = vec![condition, not, distinct, history, second[1]];
                if let Some(depth) = depth {
                    let later = self.iterations(false, &around, &vec![Crossing::Same; depth]);
                    conjuncts.extend(self.instance(&[reach, history], Uniformity::Grid, false, &later));
                    let function = self.summary.iterations[around[depth]];
                    let now = self.terms().apply(function, &[]);
                    conjuncts.push(self.terms().binary(Operator::Less, now, later[&function]));
                }
                // Conditions under which no invocation reaches the barrier, or continues the loop, would hide it.
                let (execution, spots) = (vec![distinct, condition, history], [(line, place); 2]);
                let reason = UnprovedReason::DivergentBarrier;
                let mut inexact = Vec::new();
                for is_second in [false, true] {
                    let roots = [condition, history];
                    inexact.extend(self.inexact_terms(&roots, Uniformity::Workgroup, is_second, &none));
                }
                queries.push(Query { execution, inexact, reason, spots, ..Query::of(conjuncts) });
            }
        }
        queries
    }

    fn distinct_invocations(&mut self) -> TermId {
        let ids = [0, 1, 2].map(|axis| self.summary.local_id(axis));
        self.differ(&ids, Uniformity::Workgroup)
    }

    fn distinct_groups(&mut self) -> TermId {
        let axes = (0..3).filter(|axis| self.grid[*axis] != Some(1)).collect::<Vec<_>>();
        let ids: Vec<TermId> = axes.into_iter().map(|axis| self.summary.group_id(axis)).collect();
        self.differ(&ids, Uniformity::Grid)
    }

    /// Returns the condition that some id differs between the two invocations.
    fn differ(&mut self, ids: &[TermId], shared: Uniformity) -> TermId {
        let mut different = Vec::new();
        for id in ids {
            let second = self.instance(&[*id], shared, true, &FxHashMap::default())[0];
            let equal = self.terms().equal(*id, second);
            different.push(self.terms().not(equal));
        }
        self.terms().any(&different)
    }

    /// Returns true if a conflict between two accesses is possible for some addresses.
    fn may_conflict(&self, a: &Access, b: &Access, kind: PairKind) -> bool {
        let reaches = |scope: Scope| match kind {
            PairKind::SameWorkgroup => scope != Scope::Invocation && scope != Scope::Subgroup,
            PairKind::DifferentWorkgroups => !scope.is_within_workgroup(),
        };
        let has_one_size = match (&a.location, &b.location) {
            (Location::Bytes { size, .. }, Location::Bytes { size: other, .. }) => size == other,
            _ => true,
        };
        let are_atomic = a.atomic.is_some_and(reaches) && b.atomic.is_some_and(reaches) && has_one_size;
        let is_defined = self.defines_collisions(a.class) && a.atomic.is_some() != b.atomic.is_some();
        a.descriptor.variable == b.descriptor.variable && (a.writes || b.writes) && !are_atomic && !is_defined
    }

    /// Returns true if the language defines the collisions of an atomic and a plain access, and of two equal stores.
    fn defines_collisions(&self, class: StorageClass) -> bool {
        self.summary.module.defines_collisions() && class != StorageClass::Workgroup
    }

    /// Returns the condition that two stores differ in address or value, if the language defines their collision.
    fn differ_as_stores(
        &mut self,
        [(a, one), (b, two)]: [(&Access, &FxHashMap<FunctionId, TermId>); 2],
        shared: Uniformity,
    ) -> Option<TermId> {
        let is_store =
            |access: &Access| access.writes && access.atomic.is_none() && !access.values.is_empty();
        let size = |access: &Access| match access.location {
            Location::Bytes { size, .. } => Some(size),
            Location::Texel { .. } => None,
        };
        let parts = |access: &Access| [access.location.terms(), &access.values].concat();
        let (first, second) = (parts(a), parts(b));
        let is_defined = self.defines_collisions(a.class)
            && is_store(a)
            && is_store(b)
            && (size(a), first.len()) == (size(b), second.len());
        if !is_defined {
            return None;
        }
        let first = self.instance(&first, shared, false, one);
        let second = self.instance(&second, shared, true, two);
        let terms = &mut self.summary.terms;
        let mut different = Vec::new();
        for (x, y) in first.into_iter().zip(second) {
            if terms.width(x) != terms.width(y) {
                return None;
            }
            let equal = terms.equal(x, y);
            different.push(terms.not(equal));
        }
        Some(terms.any(&different))
    }

    /// Returns the queries of all pairs of accesses.
    pub fn conflict_queries(&mut self) -> Result<Vec<Query>, Unproved> {
        let mut queries = Vec::new();
        let accesses = self.summary.accesses.clone();
        let mut known: BTreeMap<(StorageClass, Strength), Vec<Interval>> = BTreeMap::new();
        let distinct = self.distinct_invocations();
        let groups = self.distinct_groups();
        let mut pairs = 0;
        for (index, a) in accesses.iter().enumerate() {
            for b in &accesses[index..] {
                if self.may_conflict(a, b, PairKind::SameWorkgroup)
                    && self.terms().constant_of(distinct) != Some(0)
                {
                    let key = (a.class, a.strength.min(b.strength));
                    let (graph, barriers) = (&self.summary.graph, &self.summary.barriers);
                    let all =
                        known.entry(key).or_insert_with(|| intervals(graph, barriers, key.0, key.1)).clone();
                    let mut seen = BTreeSet::new();
                    let [around, around_other] =
                        [a.node, b.node].map(|node| self.summary.graph.loops_around(node));
                    for interval in &all {
                        let of = |node: usize| interval.iter().filter(move |visit| visit.node == node);
                        for Visit { node, path: first } in of(a.node) {
                            for Visit { node: other, path: second } in of(b.node) {
                                // Equal paths give equal queries; the two invocations are interchangeable.
                                let is_mirrored = node == other && seen.contains(&(second, first));
                                if is_mirrored || !seen.insert((first, second)) {
                                    continue;
                                }
                                pairs += 1;
                                let one = self.iterations(false, &around, &first.crossings);
                                let two = self.iterations(true, &around_other, &second.crossings);
                                let skipped = [self.skips(&first.skipped), self.skips(&second.skipped)];
                                let left = [
                                    self.last_iterations(false, &first.left, &one),
                                    self.last_iterations(true, &second.left, &two),
                                ];
                                queries.extend(self.conflict(
                                    [(a, &one, skipped[0]), (b, &two, skipped[1])],
                                    PairKind::SameWorkgroup,
                                    &[distinct, left[0], left[1]],
                                ));
                            }
                        }
                    }
                }
                if a.class != StorageClass::Workgroup
                    && self.may_conflict(a, b, PairKind::DifferentWorkgroups)
                    && self.terms().constant_of(groups) != Some(0)
                {
                    pairs += 1;
                    let one = self.iterations(false, &[], &[]);
                    let two = self.iterations(true, &[], &[]);
                    let truth = self.terms().truth(true);
                    let sides = [(a, &one, truth), (b, &two, truth)];
                    queries.extend(self.conflict(sides, PairKind::DifferentWorkgroups, &[groups]));
                }
                let (line, place) = (b.line, b.place);
                if pairs > MAX_PAIRS {
                    return Err(Unproved { reason: UnprovedReason::TooLarge, line, place });
                }
                if self.summary.is_stopped() {
                    return Err(Unproved { reason: UnprovedReason::Budget, line, place });
                }
            }
        }
        Ok(queries)
    }

    /// Returns the condition that an invocation has not reached some barriers.
    fn skips(&mut self, nodes: &[usize]) -> TermId {
        let barriers = self.summary.barriers.iter().filter(|barrier| nodes.contains(&barrier.node));
        let reaches: Vec<TermId> = barriers.map(|barrier| barrier.reach).collect();
        let not: Vec<TermId> = reaches.into_iter().map(|reach| self.terms().not(reach)).collect();
        self.terms().every(&not)
    }

    /// Returns the condition that the loops that an invocation has left ended in the iterations of a path.
    fn last_iterations(
        &mut self,
        is_second: bool,
        left: &BTreeMap<usize, Crossing>,
        iterations: &FxHashMap<FunctionId, TermId>,
    ) -> TermId {
        let mut equal = Vec::new();
        for (index, crossing) in left {
            let Some(iteration) = self.iteration_at(*index, *crossing) else { continue };
            let last = self.summary.last_iteration(*index);
            let last = self.instance(&[last], Uniformity::Workgroup, is_second, iterations)[0];
            equal.push(self.terms().equal(last, iteration));
        }
        self.terms().every(&equal)
    }

    /// Returns the length of an array of descriptors, if it is fixed.
    fn descriptors_of(&self, variable: u32) -> Option<u64> {
        let (module, specialized) = (self.summary.module, self.summary.specialized);
        match module.types.get(&module.variables.get(&variable)?.ty)? {
            SpirvType::Array { length, .. } => specialized.constant_number(*length),
            _ => None,
        }
    }

    /// Returns the query of a conflict, unless it is impossible by the form of the addresses.
    fn conflict(
        &mut self,
        [(a, one, first_path), (b, two, second_path)]: [(&Access, &FxHashMap<FunctionId, TermId>, TermId); 2],
        kind: PairKind,
        premises: &[TermId],
    ) -> Option<Query> {
        let shared = kind.shared();
        let parts = |access: &Access, path: TermId| {
            let mut parts = vec![access.history, access.facts, path];
            parts.extend(access.location.terms());
            parts.extend(access.descriptor.element);
            parts
        };
        let first = self.instance(&parts(a, first_path), shared, false, one);
        let second = self.instance(&parts(b, second_path), shared, true, two);
        let mut conjuncts: Vec<TermId> = first[..3].iter().chain(&second[..3]).copied().collect();
        conjuncts.extend(premises);
        let as_stores = self.differ_as_stores([(a, one), (b, two)], shared);
        let (mut execution, mut offsets) = (conjuncts.clone(), Vec::new());
        let descriptors = self.descriptors_of(a.descriptor.variable);
        let terms = &mut self.summary.terms;
        match (&a.location, &b.location) {
            (Location::Bytes { size, .. }, Location::Bytes { size: other, .. }) => {
                // An access in bounds is below the limit of a descriptor's range.
                let limit = terms.constant(64, 1 << 32);
                offsets = vec![first[3], second[3]];
                execution.extend(offsets.iter().map(|offset| terms.binary(Operator::Less, *offset, limit)));
                conjuncts.clone_from(&execution);
                conjuncts.push(overlap(terms, (first[3], *size), (second[3], *other)));
            }
            (Location::Texel { .. }, Location::Texel { .. }) => {
                for (x, y) in first[3..].iter().zip(&second[3..]) {
                    if terms.width(*x) == terms.width(*y) {
                        conjuncts.push(terms.equal(*x, *y));
                    }
                }
            }
            _ => {}
        }
        if let (Some(_), Some(_)) = (a.descriptor.element, b.descriptor.element) {
            let (x, y) = (first[first.len() - 1], second[second.len() - 1]);
            conjuncts.push(terms.equal(x, y));
            if let Some(length) = descriptors {
                let length = terms.constant(terms.width(x), length);
                execution.push(terms.binary(Operator::Less, x, length));
            }
        }
        conjuncts.extend(as_stores);
        let all = terms.every(&conjuncts);
        if terms.constant_of(all) == Some(0) {
            return None;
        }
        let name = variable_name(self.summary.module, a.descriptor.variable);
        let has_atomics = a.atomic.or(b.atomic).is_none()
            && self.summary.accesses.iter().any(|access| access.atomic.is_some());
        let spots = [(a.line, a.place), (b.line, b.place)];
        let mut inexact = Vec::new();
        for (access, is_second, iterations) in [(a, false, one), (b, true, two)] {
            let roots = &parts(access, premises[0])[1..];
            inexact.extend(self.inexact_terms(roots, shared, is_second, iterations));
        }
        Some(Query {
            conjuncts: vec![all],
            execution,
            offsets,
            inexact,
            reason: UnprovedReason::Conflict { name, has_atomics },
            spots,
            kind,
        })
    }

    /// Returns what holds of the symbols in some terms: limits of ids, the grid, and tickets.
    pub fn side_facts(&mut self, query: &Query) -> Vec<TermId> {
        let mut facts = self.condition_facts(&query.conjuncts);
        for axis in 0..3 {
            if let Some(count) = self.grid[axis] {
                let (total, count) =
                    (self.summary.group_count(axis), self.terms().constant(32, count.into()));
                facts.push(self.terms().equal(total, count));
            }
        }
        let mut roots = query.conjuncts.clone();
        roots.extend(&facts);
        let mut symbols = BTreeSet::new();
        self.summary.terms.for_each_application(&roots, |term, function| {
            symbols.insert((term, function));
        });
        for (term, function) in &symbols {
            match self.summary.terms.function(*function).kind {
                FunctionKind::GroupId(axis) => {
                    let total = self.summary.group_count(axis);
                    facts.push(self.terms().binary(Operator::Less, *term, total));
                }
                FunctionKind::LocalId(axis) => {
                    let size = self.summary.local_size[axis];
                    facts.push(self.terms().binary(Operator::Less, *term, size));
                }
                _ => {}
            }
        }
        facts.extend(self.ticket_facts(query, &symbols));
        if query.kind == PairKind::SameWorkgroup {
            facts.extend(self.subgroup_facts(&symbols));
        }
        facts.retain(|fact| self.summary.terms.constant_of(*fact) != Some(1));
        facts
    }

    /// Returns what holds of results of atomic additions of two invocations.
    fn ticket_facts(&mut self, query: &Query, symbols: &BTreeSet<(TermId, FunctionId)>) -> Vec<TermId> {
        let mut facts = Vec::new();
        for index in 0..self.summary.accesses.len() {
            let access = self.summary.accesses[index].clone();
            let Some(ticket) = access.ticket else { continue };
            let Operator::Apply(function) = self.summary.terms.term(ticket.result).operator else { continue };
            let Some(second) = self.seconds.get(&function).copied() else { continue };
            if access.class == StorageClass::Workgroup && query.kind == PairKind::DifferentWorkgroups {
                continue;
            }
            let of = |wanted: FunctionId| symbols.iter().filter(move |(_, function)| *function == wanted);
            let pairs: Vec<(TermId, TermId)> =
                of(function).flat_map(|(one, _)| of(second).map(|(two, _)| (*one, *two))).collect();
            if pairs.is_empty() {
                continue;
            }
            let is_counter = match self.counters.get(&index) {
                Some(known) => *known,
                None => self.counts_only(&access),
            };
            self.counters.insert(index, is_counter);
            if !is_counter {
                continue;
            }
            self.uses_tickets = true;
            for (one, two) in pairs {
                facts.extend(self.distinct_tickets(&access, ticket.step, one, two, query.kind));
            }
        }
        facts
    }

    /// Returns what holds of the subgroups of two invocations of a workgroup.
    ///
    /// No lane is two invocations, and a subgroup elects one lane where the whole workgroup arrives.
    fn subgroup_facts(&mut self, symbols: &BTreeSet<(TermId, FunctionId)>) -> Vec<TermId> {
        let numbers = [
            BuiltIn::SubgroupId,
            BuiltIn::NumSubgroups,
            BuiltIn::SubgroupLocalInvocationId,
            BuiltIn::SubgroupSize,
        ];
        let [Some(subgroup), Some(count), Some(lane), Some(size)] =
            numbers.map(|built_in| self.summary.subgroup_number(built_in))
        else {
            return Vec::new();
        };
        let others = self.instance(&[subgroup, lane], Uniformity::Workgroup, true, &FxHashMap::default());
        let has = |term: TermId| symbols.iter().any(|(one, _)| *one == term);
        let mut facts = Vec::new();
        for (term, limit) in [(subgroup, count), (others[0], count), (lane, size), (others[1], size)] {
            if has(term) && has(limit) {
                facts.push(self.terms().binary(Operator::Less, term, limit));
            }
        }
        let together = self.terms().equal(subgroup, others[0]);
        let apart = self.terms().not(together);
        if [subgroup, lane, others[0], others[1]].into_iter().all(has) {
            let same_lane = self.terms().equal(lane, others[1]);
            let other_lane = self.terms().not(same_lane);
            facts.push(self.terms().any(&[apart, other_lane]));
        }
        for election in self.summary.elections.clone() {
            let terms = &self.summary.terms;
            let around = self.summary.graph.loops_around(election.node);
            let arrivals = around.iter().map(|index| self.summary.loop_conditions[*index]);
            let arrivals: Vec<TermId> = arrivals.chain([election.reach]).collect();
            let Operator::Apply(function) = terms.term(election.result).operator else { continue };
            let Some(second) = self.seconds.get(&function).copied() else { continue };
            if terms.uniformity_of(&arrivals) == Uniformity::Invocation {
                continue;
            }
            let of = |wanted: FunctionId| symbols.iter().filter(move |(_, function)| *function == wanted);
            for (one, two) in of(function).flat_map(|(one, _)| of(second).map(|(two, _)| (*one, *two))) {
                self.uses_elections = true;
                let terms = &mut self.summary.terms;
                let iterations = [one, two].map(|id| terms.term(id).arguments.to_vec());
                let mut alternatives = vec![apart, terms.not(one), terms.not(two)];
                for (first, second) in iterations[0].iter().zip(&iterations[1]) {
                    let is_equal = terms.equal(*first, *second);
                    alternatives.push(terms.not(is_equal));
                }
                facts.push(terms.any(&alternatives));
            }
        }
        facts
    }

    /// Returns true if every access of a counter is an addition of a positive constant, in the same interval for
    /// workgroup memory.
    fn counts_only(&mut self, counter: &Access) -> bool {
        let all = match counter.class {
            StorageClass::Workgroup => {
                intervals(&self.summary.graph, &self.summary.barriers, counter.class, Strength::Published)
            }
            StorageClass::Buffer | StorageClass::Image | StorageClass::Output => Vec::new(),
        };
        let is_together = |other: &Access| {
            all.is_empty()
                || all.iter().any(|interval| {
                    let has = |node: usize| interval.iter().any(|visit| visit.node == node);
                    has(counter.node) && has(other.node)
                })
        };
        let shared = match counter.class {
            StorageClass::Workgroup => Uniformity::Workgroup,
            StorageClass::Buffer | StorageClass::Image | StorageClass::Output => Uniformity::Grid,
        };
        let accesses = self.summary.accesses.clone();
        accesses.iter().all(|other| {
            let is_other = other.descriptor.variable != counter.descriptor.variable
                || match (&other.location, &counter.location) {
                    (Location::Bytes { offset, size }, Location::Bytes { offset: own, size: own_size }) => {
                        // Another invocation, in any iteration, may access the counter of this one.
                        let iterations = self.iterations(true, &[], &[]);
                        let of_other = self.instance(&[*offset, other.facts], shared, true, &iterations);
                        let overlaps =
                            overlap(&mut self.summary.terms, (of_other[0], *size), (*own, *own_size));
                        let is_apart =
                            self.decide(&[overlaps, of_other[1]], Products::Abstract, &[], STEPS_OF_PRODUCTS);
                        matches!(is_apart, Decision::Impossible)
                    }
                    _ => false,
                };
            let is_counting = other.ticket.is_some() || other.atomic.is_some() && !other.writes;
            is_other || is_counting || !is_together(other)
        })
    }

    fn distinct_tickets(
        &mut self,
        access: &Access,
        step: u64,
        one: TermId,
        two: TermId,
        kind: PairKind,
    ) -> Option<TermId> {
        let arguments = |prover: &Self, id: TermId| prover.summary.terms.term(id).arguments.to_vec();
        let (first, second) = (arguments(self, one), arguments(self, two));
        let loops = self.summary.graph.loops_around(access.node);
        // The address of each, at its iterations.
        let mut iterations = [FxHashMap::default(), FxHashMap::default()];
        for (depth, index) in loops.iter().enumerate() {
            iterations[0].insert(self.summary.iterations[*index], *first.get(depth)?);
            iterations[1].insert(self.summary.iterations[*index], *second.get(depth)?);
        }
        let mut address = access.location.terms().to_vec();
        address.extend(access.descriptor.element);
        let here = self.instance(&address, kind.shared(), false, &iterations[0]);
        let there = self.instance(&address, kind.shared(), true, &iterations[1]);
        let mut premises = Vec::new();
        for (x, y) in here.iter().zip(&there) {
            premises.push(self.terms().equal(*x, *y));
        }
        if access.class == StorageClass::Workgroup {
            // Only tickets of one interval have one counter without a reset in between.
            for (depth, index) in loops.iter().enumerate() {
                let body = &self.summary.graph.loops[*index].body;
                if self.summary.barriers.iter().any(|barrier| body.contains(&barrier.node)) {
                    premises.push(self.summary.terms.equal(first[depth], second[depth]));
                }
            }
        }
        let terms = &mut self.summary.terms;
        let width = terms.width(one);
        let step = terms.constant(width, step);
        let (ahead, behind) = (terms.subtract(one, two), terms.subtract(two, one));
        let (near_ahead, near_behind) =
            (terms.binary(Operator::Less, ahead, step), terms.binary(Operator::Less, behind, step));
        let is_near = terms.any(&[near_ahead, near_behind]);
        let is_far = terms.not(is_near);
        let premise = terms.every(&premises);
        let not = terms.not(premise);
        Some(terms.any(&[not, is_far]))
    }

    /// Returns the variables of arrays of fixed length whose indices are not proved to be in bounds.
    pub fn unbounded_names(&mut self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for bound in self.summary.bounds.clone() {
            if names.contains(&bound.name) || self.bounded.contains(&bound.name) {
                continue;
            }
            let terms = &mut self.summary.terms;
            let is_inside = terms.binary(Operator::Less, bound.index, bound.length);
            let query = Query::of(vec![bound.facts, terms.not(is_inside)]);
            let mut all = query.conjuncts.clone();
            all.extend(self.side_facts(&query));
            let decision = self.decide(&all, Products::Abstract, &[], STEPS_OF_PRODUCTS);
            if !matches!(decision, Decision::Impossible) {
                names.insert(bound.name);
            }
        }
        names
    }

    /// Answers a query by the cheapest method that decides it.
    ///
    /// A model of the exact circuits is a counterexample. If there is one because a product or sum wraps, or if products
    /// are too much for the solver, the query may still be proved under the condition that they do not wrap.
    pub fn answer(&mut self, query: &Query) -> Answer {
        let mut conjuncts = query.conjuncts.clone();
        conjuncts.extend(self.side_facts(query));
        let has_products = has_products(&self.summary.terms, &conjuncts);
        let products = if has_products { Products::Abstract } else { Products::Exact };
        let known = self.exact_instances(query, &BTreeSet::new(), &conjuncts);
        let first = self.decide(&conjuncts, products, &known, STEPS_OF_QUERY);
        if let Decision::Impossible = first {
            return Answer::Proved;
        }
        let mut needed: BTreeSet<TermId> = query
            .inexact
            .iter()
            .filter(|(instance, _)| !known.contains(instance))
            .map(|(_, source)| *source)
            .filter(|source| !is_difference_in_loop(&self.summary.terms, *source))
            .collect();
        if !query.inexact.is_empty() && self.holds_if_exact(query, &conjuncts, &needed) {
            // A part that suffices is found by leaving out one after the other.
            for source in needed.clone().into_iter().take(MAX_EXACT) {
                needed.remove(&source);
                if !self.holds_if_exact(query, &conjuncts, &needed) {
                    needed.insert(source);
                }
            }
            if needed.is_empty() {
                return Answer::Proved;
            }
            // A condition that no execution of both satisfies would hide them.
            if self.execute(query, &needed).is_some() {
                return Answer::ProvedIfExact(needed.into_iter().collect());
            }
        }
        let mut answer = first;
        if has_products || matches!(answer, Decision::Unknown) {
            // A counterexample with small inputs is the cheapest.
            answer = match self.find_small(&conjuncts, &known, SMALL_INPUTS[1]) {
                Some(model) => Decision::Possible(model),
                None if !has_products || matches!(answer, Decision::Possible(_)) => answer,
                None => self.decide(&conjuncts, Products::Exact, &known, STEPS_OF_PRODUCTS),
            };
        }
        match answer {
            Decision::Impossible => Answer::Proved,
            Decision::Possible(model) => Answer::Refuted(model),
            Decision::Unknown => Answer::Open,
        }
    }

    pub fn decide(
        &mut self,
        conjuncts: &[TermId],
        products: Products,
        exact: &[TermId],
        steps: u64,
    ) -> Decision {
        self.ask(&Question { conjuncts, products, exact, small: None, steps })
    }

    /// Returns true if no input and grid satisfy the conditions.
    pub fn is_contradictory(&mut self) -> bool {
        let query = Query::of(Vec::new());
        let facts = self.side_facts(&query);
        matches!(self.decide(&facts, Products::Abstract, &[], STEPS_OF_QUERY), Decision::Impossible)
    }

    /// Finds a model with small inputs; anything else proves nothing.
    pub fn find_small(
        &mut self,
        conjuncts: &[TermId],
        exact: &[TermId],
        small: SmallInputs,
    ) -> Option<TermModel> {
        let (products, steps) = (Products::Exact, STEPS_OF_PRODUCTS);
        match self.ask(&Question { conjuncts, products, exact, small: Some(small), steps }) {
            Decision::Possible(model) => Some(model),
            Decision::Impossible | Decision::Unknown => None,
        }
    }

    fn ask(&mut self, question: &Question<'_>) -> Decision {
        let steps = question.steps.min(self.steps);
        let mut conjuncts = question.conjuncts.to_vec();
        if question.products == Products::Abstract {
            conjuncts.extend(radix_facts(&mut self.summary.terms, question.conjuncts, question.exact));
        }
        let (decision, spent) = decide(
            &self.summary.terms,
            &Question { conjuncts: &conjuncts, steps, ..*question },
            self.summary.stop,
        );
        self.steps = self.steps.saturating_sub(spent.max(1));
        match decision {
            Decision::Unknown => self.ask_installed(question),
            known => known,
        }
    }

    /// Asks the installed solver, if there is one that works.
    fn ask_installed(&mut self, question: &Question<'_>) -> Decision {
        let Some(solver) = self.solver.filter(|_| self.solver_failure.is_none()) else {
            return Decision::Unknown;
        };
        if self.summary.is_stopped() {
            return Decision::Unknown;
        }
        let answer = ask(solver, &self.summary.terms, question);
        self.has_used_solver |= matches!(answer, Ok(Decision::Impossible | Decision::Possible(_)));
        answer.unwrap_or_else(|why| {
            self.solver_failure = Some(why);
            Decision::Unknown
        })
    }

    /// Returns the products and sums of a query that do not wrap: known ones, those that are assumed not to, and those
    /// that are small wherever some facts hold.
    pub fn exact_instances(
        &self,
        query: &Query,
        assumed: &BTreeSet<TermId>,
        facts: &[TermId],
    ) -> Vec<TermId> {
        let is_exact = |source: &TermId| assumed.contains(source) || self.exact.contains(source);
        let (mut exact, mut open) = (BTreeSet::new(), BTreeSet::new());
        for (instance, source) in &query.inexact {
            _ = if is_exact(source) { &mut exact } else { &mut open }.insert(*instance);
        }
        let bounds = UpperBounds::new(&self.summary.terms, facts, &open);
        exact.extend(open.iter().filter(|instance| bounds.is_exact(**instance)));
        exact.into_iter().collect()
    }

    /// Returns the products and sums of the summary that may wrap.
    pub fn inexact_sources(&self) -> Vec<TermId> {
        let mut roots: Vec<TermId> = self.summary.loop_conditions.clone();
        for access in &self.summary.accesses {
            roots.extend(access.location.terms());
            roots.extend(access.descriptor.element);
            roots.extend([access.history, access.facts]);
        }
        roots.extend(self.summary.barriers.iter().flat_map(|barrier| [barrier.reach, barrier.history]));
        inexact_terms(&self.summary.terms, &roots)
    }

    /// Returns true if a query is proved if some terms, and those that are known not to, do not wrap.
    fn holds_if_exact(&mut self, query: &Query, conjuncts: &[TermId], needed: &BTreeSet<TermId>) -> bool {
        let exact = self.exact_instances(query, needed, conjuncts);
        matches!(self.decide(conjuncts, Products::Abstract, &exact, STEPS_OF_QUERY), Decision::Impossible)
    }
}

/// Returns true if some terms contain a product or a quotient of unknown numbers.
fn has_products(terms: &TermArena, roots: &[TermId]) -> bool {
    terms.any_subterm(roots, |term| match term.operator {
        Operator::Multiply => true,
        Operator::Divide | Operator::Remainder | Operator::DivideSigned | Operator::RemainderSigned => {
            terms.constant_of(term.arguments[1]).is_none()
        }
        _ => false,
    })
}

/// Returns true for a number of an iteration less another one.
///
/// It wraps in the first iterations whatever the inputs are, so that the condition that it does not would exclude these.
fn is_difference_in_loop(terms: &TermArena, id: TermId) -> bool {
    let Operator::Sum { coefficients, constant } = &terms.term(id).operator else { return false };
    let mut all = coefficients.iter().chain([constant]);
    let is_iteration = |id: TermId| {
        matches!(terms.kind_of(id), Some(FunctionKind::Iteration(_) | FunctionKind::LastIteration(_)))
    };
    let (mut has_iteration, width) = (false, terms.term(id).width);
    terms.for_each_subterm(&[id], |part| has_iteration |= is_iteration(part));
    has_iteration && all.any(|one| arithmetic::sign_extend(*one, width) < 0)
}

fn is_large(coefficient: u64, width: u32) -> bool {
    arithmetic::sign_extend(coefficient, width).unsigned_abs() >= 1 << 24
}

/// Returns the products and sums in some terms that may wrap by their ranges.
fn inexact_terms(terms: &TermArena, roots: &[TermId]) -> Vec<TermId> {
    let mut found = BTreeSet::new();
    terms.for_each_subterm(roots, |id| {
        let term = terms.term(id);
        let is_inexact = match &term.operator {
            // Large coefficients are those of hashes, which wrap.
            Operator::Sum { coefficients, .. }
                if coefficients.iter().any(|one| is_large(*one, term.width)) =>
            {
                false
            }
            Operator::Multiply | Operator::Sum { .. } => term.width <= 32 && !terms.is_exact(id),
            _ => false,
        };
        if is_inexact {
            found.insert(id);
        }
    });
    found.into_iter().collect()
}

/// Returns the condition that two ranges of bytes overlap.
fn overlap(terms: &mut TermArena, (a, size): (TermId, u64), (b, other): (TermId, u64)) -> TermId {
    let block = terms.common_factor([a, b]);
    if let Some((first, second)) = terms.block_of(a, block).zip(terms.block_of(b, block))
        && first.1 + size <= block
        && second.1 + other <= block
    {
        // Each range is within one block, so they overlap only in the same one.
        let meet = first.1 < second.1 + other && second.1 < first.1 + size;
        return if meet { terms.equal(first.0, second.0) } else { terms.truth(false) };
    }
    // Offsets are below 2^40, so a difference is small only if the ranges overlap.
    let (ahead, behind) = (terms.subtract(a, b), terms.subtract(b, a));
    let (size, other) = (terms.constant(64, size), terms.constant(64, other));
    let (after, before) =
        (terms.binary(Operator::Less, ahead, other), terms.binary(Operator::Less, behind, size));
    terms.any(&[after, before])
}
