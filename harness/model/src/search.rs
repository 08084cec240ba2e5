//! Search for the consistent executions of one event structure.
//!
//! First it chooses the edges that can matter across locations: reads-from of reads that may synchronize, and
//! modification orders that release sequences use. It prunes a branch once a certain pair violates an axiom.
//! The rest concerns one location at a time. Each location is solved separately, on matrices of its size, and
//! the solutions are multiplied. So the cost is the sum over the locations, not their product.
//!
//! The search is exact: it prunes only what the bounds of [`interval`](crate::interval) exclude.

use std::borrow::Cow;
use std::sync::Arc;

use litmus::LocationId;

use crate::PredictError;
use crate::activity::Activity;
use crate::cat::CatValue;
use crate::choice::{
    ReadChoice, co_bounds, fix_next_write, fix_read_source, is_axiom_possible, is_size_possible,
    restrict_read, rf_may, rf_must, static_base_value,
};
use crate::flags::Flags;
use crate::interval::{Bounds, RequestedBounds, nodes_to_evaluate};
use crate::location_solver::{LocalPlan, LocalProblem, LocationSolution};
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::skeleton::Skeleton;
use solver::BudgetTracker;

/// Returns the cost of a search step of an event structure with this number of events, in steps of small ones.
pub(crate) fn step_weight(events: usize) -> u64 {
    match events {
        0..=32 => 1,
        33..=64 => 4,
        65..=128 => 16,
        _ => 64,
    }
}

/// The consistent executions that share one set of global choices.
pub(crate) struct SearchLeaf {
    /// The flags that they raise.
    pub(crate) flags: Flags,
    /// The solutions of each accessed storage, each non-empty.
    pub(crate) locations: Vec<Arc<Vec<LocationSolution>>>,
}

/// Receives the executions that a search finds, and prunes it.
pub(crate) trait LeafVisitor {
    /// Returns false to skip executions that raise at most these flags and extend these reads-from edges,
    /// indexed by event.
    fn needs_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool;

    /// Receives a group of consistent executions. Returns the number visited, at most `max_executions`.
    fn visit_executions(&mut self, leaf: SearchLeaf, max_executions: u64) -> u64;
}

/// Stops at any consistent execution.
struct AnyExecution(bool);

impl LeafVisitor for AnyExecution {
    fn needs_executions(&mut self, _: Flags, _: &[Option<u16>]) -> bool {
        !self.0
    }

    fn visit_executions(&mut self, _: SearchLeaf, _: u64) -> u64 {
        self.0 = true;
        1
    }
}

/// Bounds on every relation before any `rf` or `co` choice, and the analyses that follow from them.
#[derive(Debug)]
pub(crate) struct StaticBounds<M: Matrix> {
    pub(crate) bounds: Bounds<M>,
    activity: Activity<M>,
    /// The bounds to evaluate after each choice.
    requested: Vec<RequestedBounds>,
    local: LocalPlan,
    /// Every read with all writes that it may read from.
    pub(crate) reads: Vec<ReadChoice>,
    pub(crate) storages: Vec<LocationId>,
}

/// The search for the consistent executions of a skeleton.
pub(crate) struct SkeletonSearch<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    static_bounds: &'a StaticBounds<M>,
    /// Every read with the writes to try.
    reads: Cow<'a, [ReadChoice]>,
    /// The chosen source of each read.
    reads_from: Vec<Option<u16>>,
    /// Storages whose last write must be distinguished.
    observed_storages: Vec<LocationId>,
    /// If set, one solution of a location represents all that agree in the last write.
    any_solution: bool,
    tracker: &'a BudgetTracker<'a>,
    memo: QuickMap<(usize, Vec<M>), Arc<Vec<LocationSolution>>>,
    /// If set, the locations may have to be solved more than once.
    has_branches: bool,
    steps: u64,
    /// Step limit of the search.
    step_limit: u64,
    reached_step_limit: bool,
    timed_out: bool,
}

/// One level of the search tree.
enum SearchStep {
    /// The source of a read: index into `reads`.
    ReadsFrom(usize),
    /// The modification order of these writes.
    Order(Vec<usize>),
}

impl<M: Matrix> StaticBounds<M> {
    /// Evaluates the nodes that depend only on the program.
    pub(crate) fn new(skeleton: &Skeleton, prepared: &PreparedPlan) -> Result<StaticBounds<M>, PredictError> {
        let n = skeleton.len();
        let plan = &prepared.plan;
        let mut bounds: Bounds<M> = Bounds::new(prepared, n);
        let reads: Vec<ReadChoice> = (0..n)
            .filter(|&event| skeleton.events[event].tags.has(crate::skeleton::Tags::R))
            .map(|read| ReadChoice { read, candidates: skeleton.candidate_writes(read) })
            .collect();
        for &(id, base) in &prepared.static_bases {
            let value = static_base_value::<M>(plan, skeleton, plan.node_at(id).kind(), base)?;
            bounds.set_static(id, value);
        }
        for &id in &prepared.rf {
            bounds.set(id, CatValue::Relation(rf_must(n, &reads)), CatValue::Relation(rf_may(n, &reads)));
        }
        for &id in &prepared.co {
            let (must, may) = co_bounds(skeleton);
            bounds.set(id, CatValue::Relation(must), CatValue::Relation(may));
        }
        bounds.evaluate_all(plan);
        let same_location: M = skeleton.base_relation("loc").unwrap_or_else(|| M::empty(n));
        let activity = Activity::new(prepared, &bounds, &same_location);
        let local = LocalPlan::new(prepared, &activity);
        let axioms = plan.axioms.iter().map(|axiom| RequestedBounds {
            node: axiom.node,
            must: !axiom.negated,
            may: axiom.negated,
        });
        let both = |node| RequestedBounds { node, must: true, may: true };
        let sizes = plan.size_constraints.iter().map(|size| both(size.node));
        let constants = local.constants.iter().map(|id| both(*id));
        let requested =
            nodes_to_evaluate(prepared, axioms.chain(sizes).chain(constants), |id| activity.is_active(id));
        Ok(StaticBounds { bounds, activity, requested, local, reads, storages: skeleton.storages() })
    }
}

impl<'a, M: Matrix> SkeletonSearch<'a, M> {
    /// Creates a search for all executions; `observed_storages` are those whose last write must be
    /// distinguished.
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a PreparedPlan,
        static_bounds: &'a StaticBounds<M>,
        observed_storages: Vec<LocationId>,
        tracker: &'a BudgetTracker<'a>,
    ) -> SkeletonSearch<'a, M> {
        SkeletonSearch {
            skeleton,
            prepared,
            static_bounds,
            reads: Cow::Borrowed(&static_bounds.reads),
            reads_from: vec![None; skeleton.len()],
            observed_storages,
            any_solution: false,
            tracker,
            memo: QuickMap::default(),
            has_branches: true,
            steps: 0,
            step_limit: u64::MAX,
            reached_step_limit: false,
            timed_out: false,
        }
    }

    /// Restricts each read to some of its writes, in the order of [`StaticBounds::reads`].
    ///
    /// If `any_solution` is set, all lead to the same results, and one solution of a location represents all
    /// that agree in its last write.
    pub(crate) fn restrict_reads(&mut self, reads: Vec<ReadChoice>, any_solution: bool) {
        self.reads = Cow::Owned(reads);
        self.any_solution = any_solution;
    }

    /// Sets the step limit of the search.
    pub(crate) fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Returns true if the search ended at its step limit.
    pub(crate) fn reached_step_limit(&self) -> bool {
        self.reached_step_limit && !self.timed_out
    }

    /// Passes every wanted group of consistent executions to the visitor; false if the budget or step limit
    /// was exceeded.
    pub(crate) fn run(&mut self, visitor: &mut dyn LeafVisitor) -> bool {
        // On an infeasible path, some read has no candidates.
        if self.reads.iter().any(|choice| choice.candidates.is_empty()) {
            return true;
        }
        let mut steps = Vec::new();
        // Only reads whose source has an effect beyond their location become steps.
        // `solve_location` chooses the others.
        for (index, choice) in self.reads.iter().enumerate() {
            let mut column = M::Set::empty();
            column.insert(choice.read);
            let active = self.prepared.rf.iter().any(|id| {
                self.static_bounds
                    .activity
                    .active_pairs(*id, false)
                    .and_then(CatValue::as_relation)
                    .is_some_and(|pairs| !pairs.restrict_columns(column).is_empty())
            });
            match choice.candidates.as_slice() {
                [write] => self.reads_from[choice.read] = Some(*write as u16),
                _ if active => steps.push(SearchStep::ReadsFrom(index)),
                _ => {}
            }
        }
        for &storage in &self.static_bounds.storages {
            let writes = self.ordered_writes(storage, true);
            if !writes.is_empty() {
                // If any pair of the location's order matters globally, the whole order is chosen.
                steps.push(SearchStep::Order(self.ordered_writes(storage, false)));
            }
        }
        let mut bounds = self.static_bounds.bounds.clone();
        if let Cow::Owned(reads) = &self.reads {
            for (choice, all) in reads.iter().zip(&self.static_bounds.reads) {
                if choice.candidates.len() == all.candidates.len() {
                    continue;
                }
                for id in &self.prepared.rf {
                    restrict_read(&mut bounds, *id, choice);
                }
            }
            bounds.evaluate(&self.prepared.plan, &self.static_bounds.requested);
        }
        // Without global choices there is one leaf, so a memo of solved locations would never be
        // read.
        self.has_branches = !steps.is_empty();
        if self.is_possible(&bounds) {
            self.descend(&steps, &mut bounds, visitor);
        }
        !self.timed_out && !self.reached_step_limit
    }

    /// Returns true if a consistent execution exists; `None` if the budget ran out first.
    pub(crate) fn is_satisfiable(&mut self) -> Option<bool> {
        let mut first = AnyExecution(false);
        let complete = self.run(&mut first);
        (first.0 || complete).then_some(first.0)
    }

    /// Returns the writes of a storage whose order can matter: globally, or at all.
    fn ordered_writes(&self, storage: LocationId, global_only: bool) -> Vec<usize> {
        let mut involved = M::Set::empty();
        for id in &self.prepared.co {
            for (local, wanted) in [(false, true), (true, !global_only)] {
                if wanted
                    && let Some(pairs) =
                        self.static_bounds.activity.active_pairs(*id, local).and_then(CatValue::as_relation)
                {
                    involved = involved.union(pairs.domain()).union(pairs.range());
                }
            }
        }
        let observed = !global_only && self.observed_storages.contains(&storage);
        (0..self.skeleton.len())
            .filter(|&event| {
                let e = &self.skeleton.events[event];
                e.storage == Some(storage)
                    && e.tags.has(crate::skeleton::Tags::W)
                    && !e.tags.has(crate::skeleton::Tags::IW)
                    && (involved.contains(event) || observed)
            })
            .collect()
    }

    fn descend(&mut self, steps: &[SearchStep], bounds: &mut Bounds<M>, visitor: &mut dyn LeafVisitor) {
        if self.spend_step() {
            return;
        }
        let flags = self.possible_flags(bounds);
        if !visitor.needs_executions(flags, &self.reads_from) {
            return;
        }
        let Some((step, rest)) = steps.split_first() else {
            self.visit_leaf(bounds, flags, visitor);
            return;
        };
        let prepared = self.prepared;
        match step {
            SearchStep::ReadsFrom(index) => {
                let ReadChoice { read, candidates } = self.reads[*index].clone();
                let saved = self.save(bounds);
                for write in candidates {
                    for id in &prepared.rf {
                        fix_read_source(bounds, *id, read, write);
                    }
                    bounds.evaluate(&prepared.plan, &self.static_bounds.requested);
                    if self.is_possible(bounds) {
                        self.reads_from[read] = Some(write as u16);
                        self.descend(rest, bounds, visitor);
                        self.reads_from[read] = None;
                    }
                    self.restore(bounds, &saved);
                }
            }
            SearchStep::Order(writes) => self.order_writes(writes, rest, bounds, visitor),
        }
    }

    /// Orders the writes of one storage one by one.
    fn order_writes(
        &mut self,
        open: &[usize],
        rest: &[SearchStep],
        bounds: &mut Bounds<M>,
        visitor: &mut dyn LeafVisitor,
    ) {
        if open.is_empty() {
            self.descend(rest, bounds, visitor);
            return;
        }
        let prepared = self.prepared;
        let saved = self.save(bounds);
        for (index, &write) in open.iter().enumerate() {
            let mut remaining = open.to_vec();
            remaining.remove(index);
            if self.spend_step() {
                return;
            }
            let mut possible = true;
            // If the order already implies that `write` is next, the bounds do not change: neither
            // evaluation nor restoring is needed.
            let is_implied = remaining.is_empty();
            if !is_implied {
                for id in &prepared.co {
                    fix_next_write(bounds, *id, write, &remaining);
                }
                bounds.evaluate(&prepared.plan, &self.static_bounds.requested);
                possible = self.is_possible(bounds)
                    && visitor.needs_executions(self.possible_flags(bounds), &self.reads_from);
            }
            if possible {
                self.order_writes(&remaining, rest, bounds, visitor);
            }
            if !is_implied {
                self.restore(bounds, &saved);
            }
        }
    }

    /// Saves the bounds of the leaves before a choice.
    fn save(&self, bounds: &Bounds<M>) -> [Vec<(CatValue<M>, CatValue<M>)>; 2] {
        [&self.prepared.rf, &self.prepared.co].map(|leaves| bounds.save(leaves))
    }

    /// Undoes a choice and its consequences.
    fn restore(&mut self, bounds: &mut Bounds<M>, [rf, co]: &[Vec<(CatValue<M>, CatValue<M>)>; 2]) {
        bounds.restore(&self.prepared.rf, rf);
        bounds.restore(&self.prepared.co, co);
    }

    /// Spends a step; returns true if none is left.
    fn spend_step(&mut self) -> bool {
        self.timed_out |= self.tracker.spend(1);
        self.steps = self.steps.saturating_add(1);
        self.reached_step_limit |= self.steps > self.step_limit;
        self.timed_out || self.reached_step_limit
    }

    /// Returns true if the certain pairs violate no axiom.
    fn is_possible(&self, bounds: &Bounds<M>) -> bool {
        let plan = &self.prepared.plan;
        plan.axioms.iter().filter(|axiom| !axiom.is_flag).all(|axiom| is_axiom_possible(axiom, bounds))
            && plan.size_constraints.iter().all(|size| is_size_possible(size, bounds))
    }

    /// Returns the flags that may be raised. Exact once every relevant choice is made.
    fn possible_flags(&self, bounds: &Bounds<M>) -> Flags {
        let mut flags = Flags::default();
        for axiom in self.prepared.plan.axioms.iter().filter(|axiom| axiom.is_flag) {
            if is_axiom_possible(axiom, bounds) {
                flags.raise_axiom(axiom);
            }
        }
        flags
    }

    fn visit_leaf(&mut self, bounds: &Bounds<M>, flags: Flags, visitor: &mut dyn LeafVisitor) {
        let mut locations = Vec::with_capacity(self.static_bounds.storages.len());
        for index in 0..self.static_bounds.storages.len() {
            let solutions = self.solve_location(index, bounds);
            // Locations are independent here, so one without a solution excludes the whole leaf.
            if self.timed_out || self.reached_step_limit || solutions.is_empty() {
                return;
            }
            locations.push(solutions);
        }
        let remaining = self.step_limit.saturating_sub(self.steps);
        self.steps =
            self.steps.saturating_add(visitor.visit_executions(SearchLeaf { flags, locations }, remaining));
        self.reached_step_limit |= self.steps > self.step_limit;
    }

    fn solve_location(&mut self, index: usize, bounds: &Bounds<M>) -> Arc<Vec<LocationSolution>> {
        let storage = self.static_bounds.storages[index];
        let problem = LocalProblem::new(
            self.prepared,
            &self.static_bounds.local,
            self.skeleton,
            bounds,
            &self.static_bounds.activity,
            &self.reads,
            storage,
            self.ordered_writes(storage, false),
            self.observed_storages.contains(&storage),
            self.any_solution,
        );
        // Different global choices often leave a location with the same inputs, so its solutions
        // are shared between leaves.
        let key = self.has_branches.then(|| (index, problem.memo_key()));
        if let Some(key) = &key
            && let Some(cached) = self.memo.get(key)
        {
            return cached.clone();
        }
        let remaining = self.step_limit.saturating_sub(self.steps);
        let result = problem.solve(self.tracker, remaining);
        self.steps = self.steps.saturating_add(result.steps);
        if !result.complete {
            // An incomplete solution ended either at the step limit of this search or of the whole budget.
            // The caller falls back to other strategies only after the former.
            self.reached_step_limit |= result.steps > remaining;
            self.timed_out |= result.steps <= remaining;
        }
        let solutions = result.solutions;
        let solutions = Arc::new(solutions);
        if let Some(key) = key {
            self.memo.insert(key, solutions.clone());
        }
        solutions
    }
}
