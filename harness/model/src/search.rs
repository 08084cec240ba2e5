//! Search for the consistent executions of one event structure.
//!
//! It chooses the source of each read, then the modification order of each storage, and prunes a branch once a certain
//! pair violates an axiom. It is exact: it prunes only what the bounds of [`interval`](crate::interval) exclude. An order
//! on which neither an axiom nor a final value depends is not chosen.

use litmus::LocationId;

use crate::PredictError;
use crate::cat::{CatValue, NodeId, PlanNode};
use crate::choice::{
    ReadChoice, co_bounds, fix_next_write, fix_read_source, is_axiom_possible, is_size_possible, rf_bounds,
    static_base_value,
};
use crate::flags::Flags;
use crate::interval::{Bounds, RequestedBounds, needed_bounds};
use crate::matrix::Matrix;
use crate::prepared::PreparedPlan;
use crate::skeleton::{Skeleton, Tags};
use solver::{BudgetTracker, STOP_POLL_INTERVAL};

/// Returns the cost of a search step of an event structure with this number of events, in steps of small ones.
pub(crate) fn step_weight(events: usize) -> u64 {
    match events {
        0..=32 => 1,
        33..=64 => 4,
        65..=128 => 16,
        _ => 64,
    }
}

/// Receives the executions that a search finds, and prunes it.
pub(crate) trait ExecutionVisitor {
    /// Returns false to skip executions that raise at most these flags and extend these reads-from edges,
    /// indexed by event.
    fn needs_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool;

    /// Receives a consistent execution: its flags, its reads-from edges, and the last write of each observed storage.
    fn visit_execution(&mut self, flags: Flags, reads_from: &[Option<u16>], last_writes: &[u16]);
}

/// Stops at any consistent execution.
struct AnyExecution(bool);

impl ExecutionVisitor for AnyExecution {
    fn needs_executions(&mut self, _: Flags, _: &[Option<u16>]) -> bool {
        !self.0
    }

    fn visit_execution(&mut self, _: Flags, _: &[Option<u16>], _: &[u16]) {
        self.0 = true;
    }
}

/// The events of an event structure of which an execution may lack some.
pub(crate) struct MissingEvents<'p, M> {
    /// The pairs whose first event executes only if the second does.
    pub(crate) implied: M,
    /// Returns true if all executions of its events have this pair of a base set or relation, given by name.
    pub(crate) is_certain: &'p dyn Fn(&str, usize, usize) -> bool,
    /// Returns true if all consistent executions of two writes have them in this order.
    pub(crate) is_ordered: &'p dyn Fn(usize, usize) -> bool,
}

/// Bounds on every relation before any `rf` or `co` choice.
#[derive(Clone, Debug)]
pub(crate) struct StaticBounds<M: Matrix> {
    pub(crate) bounds: Bounds<M>,
    /// The bounds to evaluate after each choice.
    pub(crate) requested: Vec<RequestedBounds>,
    /// Every read with all writes that it may read from.
    pub(crate) reads: Vec<ReadChoice>,
}

/// The search for the consistent executions of a skeleton.
pub(crate) struct SkeletonSearch<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    static_bounds: &'a StaticBounds<M>,
    tracker: &'a BudgetTracker<'a>,
    /// The chosen source of each read.
    reads_from: Vec<Option<u16>>,
    /// The last write of each observed storage, as far as it is chosen.
    last_writes: Vec<u16>,
    steps: u64,
    /// Step limit of the search.
    step_limit: u64,
    reached_step_limit: bool,
    timed_out: bool,
}

/// One level of the search tree.
enum SearchStep {
    /// The source of a read: index into [`StaticBounds::reads`].
    ReadsFrom(usize),
    /// The modification order of these writes, and if the last one is observed.
    Order(Vec<usize>, bool),
}

impl<M: Matrix> StaticBounds<M> {
    /// Evaluates the nodes that depend only on the program.
    pub(crate) fn new(
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        missing: Option<MissingEvents<'_, M>>,
    ) -> Result<StaticBounds<M>, PredictError> {
        let n = skeleton.len();
        let plan = &prepared.plan;
        let is_certain = missing.as_ref().map(|missing| missing.is_certain);
        let is_ordered = missing.as_ref().map(|missing| missing.is_ordered);
        let mut bounds: Bounds<M> = Bounds::new(prepared, n, missing.map(|missing| missing.implied));
        let reads: Vec<ReadChoice> = (0..n)
            .filter(|&event| skeleton.events[event].tags.has(Tags::R))
            .map(|read| ReadChoice { read, candidates: skeleton.candidate_writes(read) })
            .collect();
        for &(id, base) in &prepared.static_bases {
            let value = static_base_value::<M>(plan, skeleton, plan.node_at(id).kind(), base)?;
            let certain = match is_certain {
                Some(is_certain) => {
                    let name = plan.name_text(base.name);
                    value.filter_pairs(n, |from, to| is_certain(name, from, to))
                }
                None => value.clone(),
            };
            bounds.set(id, certain, value);
        }
        for &id in &prepared.rf {
            let (must, may) = rf_bounds(n, &reads);
            bounds.set(id, CatValue::Relation(must), CatValue::Relation(may));
        }
        for &id in &prepared.co {
            let (must, may) = co_bounds(skeleton, is_ordered);
            bounds.set(id, CatValue::Relation(must), CatValue::Relation(may));
        }
        bounds.evaluate_all(plan);
        let axioms = plan.axioms.iter().map(|axiom| RequestedBounds {
            node: axiom.node,
            must: !axiom.negated,
            may: axiom.negated,
        });
        let sizes = plan.size_constraints.iter().map(|size| RequestedBounds {
            node: size.node,
            must: true,
            may: true,
        });
        let requested = needed_bounds(prepared, axioms.chain(sizes), |id| bounds.must(id) != bounds.may(id));
        Ok(StaticBounds { bounds, requested, reads })
    }

    /// Returns true if an axiom, a flag or a size may depend on the order of these two writes.
    fn is_order_relevant(&self, prepared: &PreparedPlan, one: usize, other: usize) -> bool {
        let plan = &prepared.plan;
        let is_co = |id: &NodeId| prepared.co.contains(id);
        let mut roots = plan
            .axioms
            .iter()
            .map(|axiom| axiom.node)
            .chain(plan.size_constraints.iter().map(|size| size.node));
        roots.any(|root| is_co(&root))
            || self.requested.iter().any(|wanted| {
                let node = plan.node_at(wanted.node);
                let may = |from, to| {
                    self.bounds.may(wanted.node).as_relation().is_none_or(|pairs| pairs.contains(from, to))
                };
                node.operand_nodes().any(|operand| is_co(&operand))
                    && match node {
                        // Such a node has a pair of its operand or not, whatever the other pairs are.
                        PlanNode::Intersection(..)
                        | PlanNode::Difference(..)
                        | PlanNode::RestrictRows(..)
                        | PlanNode::RestrictColumns(..) => may(one, other) || may(other, one),
                        _ => true,
                    }
            })
    }
}

impl<'a, M: Matrix> SkeletonSearch<'a, M> {
    /// Creates a search for all executions.
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a PreparedPlan,
        static_bounds: &'a StaticBounds<M>,
        tracker: &'a BudgetTracker<'a>,
    ) -> SkeletonSearch<'a, M> {
        SkeletonSearch {
            skeleton,
            prepared,
            static_bounds,
            tracker,
            reads_from: vec![None; skeleton.len()],
            last_writes: Vec::new(),
            steps: 0,
            step_limit: u64::MAX,
            reached_step_limit: false,
            timed_out: false,
        }
    }

    /// Sets the step limit of the search.
    pub(crate) fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Returns true if the search ended at its step limit.
    pub(crate) fn reached_step_limit(&self) -> bool {
        self.reached_step_limit && !self.timed_out
    }

    /// Passes every wanted consistent execution to the visitor; false if the budget or step limit was exceeded.
    pub(crate) fn run(&mut self, visitor: &mut dyn ExecutionVisitor) -> bool {
        let static_bounds = self.static_bounds;
        // On an infeasible path, some read has no candidates.
        if static_bounds.reads.iter().any(|choice| choice.candidates.is_empty()) {
            return true;
        }
        let mut steps = Vec::new();
        for (index, choice) in static_bounds.reads.iter().enumerate() {
            match choice.candidates.as_slice() {
                [write] => self.reads_from[choice.read] = Some(*write as u16),
                _ => steps.push(SearchStep::ReadsFrom(index)),
            }
        }
        let observed = self.skeleton.observed_storages();
        for storage in self.skeleton.storages() {
            self.add_order_step(storage, observed.contains(&storage), &mut steps);
        }
        let mut bounds = static_bounds.bounds.clone();
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

    /// Adds the choice of the order of the writes to a storage, as far as it can matter.
    fn add_order_step(&mut self, storage: LocationId, is_observed: bool, steps: &mut Vec<SearchStep>) {
        let events = &self.skeleton.events;
        let is_write =
            |event: &usize| events[*event].storage == Some(storage) && events[*event].tags.has(Tags::W);
        let all: Vec<usize> = (0..events.len()).filter(is_write).collect();
        let mut writes: Vec<usize> =
            all.iter().copied().filter(|write| !events[*write].tags.has(Tags::IW)).collect();
        if !is_observed {
            let (prepared, bounds) = (self.prepared, self.static_bounds);
            let is_relevant = |write: &usize| {
                let mut others = writes.iter().filter(|other| *other != write);
                others.any(|other| bounds.is_order_relevant(prepared, *write, *other))
            };
            writes = writes.iter().copied().filter(is_relevant).collect();
        }
        if writes.len() > 1 {
            steps.push(SearchStep::Order(writes, is_observed));
        } else if is_observed {
            // The last initial write: with one per name, later ones overwrite earlier ones (`co_bounds`).
            self.last_writes.extend(all.last().map(|write| *write as u16));
        }
    }

    fn descend(&mut self, steps: &[SearchStep], bounds: &mut Bounds<M>, visitor: &mut dyn ExecutionVisitor) {
        if self.spend_step() {
            return;
        }
        let flags = self.possible_flags(bounds);
        if !visitor.needs_executions(flags, &self.reads_from) {
            return;
        }
        let Some((step, rest)) = steps.split_first() else {
            visitor.visit_execution(flags, &self.reads_from, &self.last_writes);
            return;
        };
        let prepared = self.prepared;
        match step {
            SearchStep::ReadsFrom(index) => {
                let ReadChoice { read, candidates } = &self.static_bounds.reads[*index];
                let saved = bounds.save(&prepared.rf);
                for write in candidates {
                    if self.is_stopped() {
                        break;
                    }
                    for id in &prepared.rf {
                        fix_read_source(bounds, *id, *read, *write);
                    }
                    bounds.evaluate(&prepared.plan, &self.static_bounds.requested);
                    if self.is_possible(bounds) {
                        self.reads_from[*read] = Some(*write as u16);
                        self.descend(rest, bounds, visitor);
                        self.reads_from[*read] = None;
                    }
                    bounds.restore(&prepared.rf, &saved);
                }
            }
            SearchStep::Order(writes, is_observed) => {
                self.order_writes(writes, *is_observed, rest, bounds, visitor)
            }
        }
    }

    /// Orders the writes of one storage one by one.
    fn order_writes(
        &mut self,
        open: &[usize],
        is_observed: bool,
        rest: &[SearchStep],
        bounds: &mut Bounds<M>,
        visitor: &mut dyn ExecutionVisitor,
    ) {
        if let [last] = open {
            // The order already implies that it is the last one.
            self.last_writes.extend(is_observed.then_some(*last as u16));
            self.descend(rest, bounds, visitor);
            self.last_writes.truncate(self.last_writes.len() - usize::from(is_observed));
            return;
        }
        let prepared = self.prepared;
        let saved = bounds.save(&prepared.co);
        for (index, &write) in open.iter().enumerate() {
            let mut remaining = open.to_vec();
            remaining.remove(index);
            if self.spend_step() {
                return;
            }
            for id in &prepared.co {
                fix_next_write(bounds, *id, write, &remaining);
            }
            bounds.evaluate(&prepared.plan, &self.static_bounds.requested);
            if self.is_possible(bounds)
                && visitor.needs_executions(self.possible_flags(bounds), &self.reads_from)
            {
                self.order_writes(&remaining, is_observed, rest, bounds, visitor);
            }
            bounds.restore(&prepared.co, &saved);
        }
    }

    /// Spends a step; returns true if none is left.
    fn spend_step(&mut self) -> bool {
        self.tracker.spend(1);
        self.steps = self.steps.saturating_add(1);
        self.reached_step_limit |= self.steps > self.step_limit;
        self.is_stopped()
    }

    /// Returns true if no step is left. A step of a large structure is long enough to look at the clock.
    fn is_stopped(&mut self) -> bool {
        if step_weight(self.skeleton.len()) >= STOP_POLL_INTERVAL {
            self.tracker.poll_stop();
        }
        self.timed_out |= self.tracker.is_exhausted();
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
}
