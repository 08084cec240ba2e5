//! Solves one location: the sources of its reads and the order of its writes, once all global choices are
//! made.

use std::collections::hash_map::Entry;

use litmus::LocationId;

use crate::activity::Activity;
use crate::cat::{CatValue, NodeId, PlanNode};
use crate::choice::{ReadChoice, fix_next_write, fix_read_source, is_axiom_possible};
use crate::interval::{Bounds, RequestedBounds, nodes_to_evaluate};
use crate::matrix::{Bits, Matrix, Matrix16};
use crate::prepared::PreparedPlan;
use crate::quick::{QuickMap, QuickSet};
use crate::skeleton::{Skeleton, Tags};
use solver::BudgetTracker;

/// Consistent choices for one location that agree in everything observable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocationSolution {
    /// For each read of the location, in ascending order, the write that it reads from.
    pub(crate) reads_from: Vec<(u16, ReadSource)>,
    /// The last write of the location, if the final value is observed as such.
    pub(crate) last_write: Option<u16>,
    /// Number of distinguishable modification orders that lead to this solution.
    pub(crate) orders: u64,
}

/// The possible sources of a read in a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadSource {
    /// From this write.
    Write(u16),
    /// Any of these: no axiom depends on the choice.
    AnyOf(Vec<u16>),
}

impl ReadSource {
    /// Returns the possible writes.
    pub(crate) fn writes(&self) -> &[u16] {
        match self {
            ReadSource::Write(write) => std::slice::from_ref(write),
            ReadSource::AnyOf(writes) => writes,
        }
    }
}

/// The solutions of a location.
pub(crate) struct LocationSolutions {
    pub(crate) solutions: Vec<LocationSolution>,
    /// True if the search was exhaustive.
    pub(crate) complete: bool,
    /// Number of search steps.
    pub(crate) steps: u64,
}

/// The nodes to evaluate in every location of an event structure.
#[derive(Debug)]
pub(crate) struct LocalPlan {
    /// Nodes that choices within a location can change, in evaluation order.
    nodes: Vec<NodeId>,
    /// The bounds to evaluate after each choice.
    requested: Vec<RequestedBounds>,
    /// Their static operands.
    pub(crate) constants: Vec<NodeId>,
    /// Axioms that are checked location by location.
    axioms: Vec<usize>,
}

impl LocalPlan {
    pub(crate) fn new<M: Matrix>(prepared: &PreparedPlan, activity: &Activity<M>) -> LocalPlan {
        let plan = &prepared.plan;
        let is_leaf = |id: &NodeId| prepared.rf.contains(id) || prepared.co.contains(id);
        let mut open = vec![false; plan.nodes.len()];
        let mut nodes = Vec::new();
        for index in prepared.first_dynamic..plan.nodes.len() {
            let id = NodeId(index as u32);
            // No axiom depends on this node within a location.
            if activity.active_pairs(id, true).is_none_or(CatValue::is_empty) {
                continue;
            }
            if is_leaf(&id) {
                open[index] = true;
            } else if activity.stays_in_location(id)
                && plan.node_at(id).operand_nodes().any(|operand| open[operand.to_index()])
            {
                open[index] = true;
                nodes.push(id);
            }
        }
        let axioms: Vec<usize> = (0..plan.axioms.len())
            .filter(|&axiom| activity.axiom_is_local[axiom] && open[plan.axioms[axiom].node.to_index()])
            .collect();
        let checked = axioms.iter().map(|axiom| {
            let axiom = &plan.axioms[*axiom];
            RequestedBounds { node: axiom.node, must: !axiom.negated, may: axiom.negated }
        });
        // Orders that agree in these nodes are not distinguished.
        let distinguishing = nodes
            .iter()
            .filter(|id| plan.node_at(**id).operand_nodes().any(|operand| prepared.co.contains(&operand)))
            .map(|id| RequestedBounds { node: *id, must: true, may: false });
        let requested = nodes_to_evaluate(prepared, checked.chain(distinguishing), |id| open[id.to_index()]);
        let mut constants: Vec<NodeId> = requested
            .iter()
            .flat_map(|wanted| plan.node_at(wanted.node).operand_nodes())
            .filter(|id| !open[id.to_index()] && !is_leaf(id))
            .collect();
        constants.sort_unstable();
        constants.dedup();
        LocalPlan { nodes, requested, constants, axioms }
    }
}

/// The search problem of one location.
pub(crate) struct LocalProblem<'a, M: Matrix> {
    prepared: &'a PreparedPlan,
    local: &'a LocalPlan,
    bounds: &'a Bounds<M>,
    /// Events of the location, in ascending order.
    events: Vec<usize>,
    reads: Vec<LocalRead>,
    writes: Vec<usize>,
    initial: Option<usize>,
    observes_last_write: bool,
    /// If set, one solution represents all that agree in the last write.
    any_solution: bool,
}

struct LocalRead {
    read: usize,
    candidates: Vec<usize>,
    /// True if an axiom can depend on the source of this read.
    active: bool,
}

impl<'a, M: Matrix> LocalProblem<'a, M> {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site, each argument a different view of the search"
    )]
    pub(crate) fn new(
        prepared: &'a PreparedPlan,
        local: &'a LocalPlan,
        skeleton: &Skeleton,
        bounds: &'a Bounds<M>,
        activity: &Activity<M>,
        reads: &[ReadChoice],
        storage: LocationId,
        writes: Vec<usize>,
        observes_last_write: bool,
        any_solution: bool,
    ) -> LocalProblem<'a, M> {
        let rf = &prepared.rf;
        let events: Vec<usize> =
            (0..skeleton.len()).filter(|&e| skeleton.events[e].storage == Some(storage)).collect();
        let reads = reads
            .iter()
            .filter(|choice| events.contains(&choice.read))
            .map(|choice| {
                // Global choices are certain at this point.
                let candidates: Vec<usize> = choice
                    .candidates
                    .iter()
                    .copied()
                    .filter(|write| {
                        rf.iter().all(|id| {
                            bounds.may(*id).as_relation().is_none_or(|m| m.contains(*write, choice.read))
                        })
                    })
                    .collect();
                let mut column = M::Set::empty();
                column.insert(choice.read);
                let active = rf.iter().any(|id| {
                    activity
                        .active_pairs(*id, true)
                        .and_then(CatValue::as_relation)
                        .is_some_and(|pairs| !pairs.restrict_columns(column).is_empty())
                });
                LocalRead { read: choice.read, candidates, active }
            })
            .collect();
        // The last initial write: with one per name, later ones overwrite earlier ones
        // (`co_bounds`).
        let initial = events.iter().copied().rfind(|&e| skeleton.events[e].tags.has(Tags::IW));
        LocalProblem {
            prepared,
            local,
            bounds,
            events,
            reads,
            writes,
            initial,
            observes_last_write,
            any_solution,
        }
    }

    /// Returns all inputs that the solutions depend on, as a memoization key.
    pub(crate) fn memo_key(&self) -> Vec<M> {
        let mut set = M::Set::empty();
        self.events.iter().for_each(|event| set.insert(*event));
        // Only pairs within the location affect it. Sets are encoded as identities to have one key
        // type.
        let cut = |value: &CatValue<M>| match value {
            CatValue::Set(s) => M::identity_on(self.bounds.n, s.intersection(set)),
            CatValue::Relation(r) => r.restrict_rows(set).restrict_columns(set),
        };
        self.local
            .constants
            .iter()
            .chain(&self.prepared.rf)
            .chain(&self.prepared.co)
            .flat_map(|id| [cut(self.bounds.must(*id)), cut(self.bounds.may(*id))])
            .collect()
    }

    /// Returns all solutions, within the budget and a limit of steps.
    pub(crate) fn solve(&self, tracker: &BudgetTracker<'_>, limit: u64) -> LocationSolutions {
        // The projection to the events of the location allows a narrower matrix type. Most locations have few events.
        if self.events.len() <= Matrix16::CAPACITY {
            self.solve_with::<Matrix16>(tracker, limit)
        } else {
            self.solve_with::<M>(tracker, limit)
        }
    }

    fn solve_with<L: Matrix>(&self, tracker: &BudgetTracker<'_>, limit: u64) -> LocationSolutions {
        let mut bounds: Bounds<L> = Bounds::new(self.prepared, self.events.len());
        for id in self.local.constants.iter().chain(&self.prepared.rf).chain(&self.prepared.co) {
            let must = self.project::<L>(self.bounds.must(*id));
            let may = self.project::<L>(self.bounds.may(*id));
            bounds.set(*id, must, may);
        }
        let mut open_writes: Vec<usize> = Vec::new();
        // If the order is chosen already, no pair of these writes is open.
        for write in &self.writes {
            if let Some(index) = self.event_index(*write) {
                open_writes.push(index);
            }
        }
        let mut solver = LocalSolver {
            problem: self,
            tracker,
            limit,
            solutions: Vec::new(),
            counted_orders: Vec::new(),
            solution_index: QuickMap::default(),
            complete: true,
            chosen_sources: vec![None; self.reads.len()],
            steps: 0,
        };
        if !self.writes.is_empty() && self.is_order_chosen() {
            let last = self.chosen_last_write();
            bounds.evaluate(&self.prepared.plan, &self.local.requested);
            solver.choose_sources(0, &mut bounds, last);
        } else {
            bounds.evaluate(&self.prepared.plan, &self.local.requested);
            if solver.is_possible(&bounds) {
                let last = self.initial.and_then(|i| self.event_index(i));
                solver.order_writes(&open_writes, &mut bounds, last);
            }
        }
        LocationSolutions { solutions: solver.solutions, complete: solver.complete, steps: solver.steps }
    }

    fn event_index(&self, event: usize) -> Option<usize> {
        self.events.iter().position(|e| *e == event)
    }

    /// Returns true if the global search has already ordered all writes of the location.
    fn is_order_chosen(&self) -> bool {
        !self.prepared.co.is_empty()
            && self.writes.iter().all(|a| {
                self.writes.iter().all(|b| {
                    a == b
                        || self.prepared.co.iter().all(|id| {
                            self.bounds
                                .must(*id)
                                .as_relation()
                                .is_some_and(|must| must.contains(*a, *b) || must.contains(*b, *a))
                        })
                })
            })
    }

    fn chosen_last_write(&self) -> Option<usize> {
        let last = self.writes.iter().copied().find(|a| {
            self.writes.iter().all(|b| {
                a == b
                    || self.prepared.co.iter().all(|id| {
                        self.bounds.must(*id).as_relation().is_some_and(|must| must.contains(*b, *a))
                    })
            })
        });
        last.or(self.initial).and_then(|event| self.event_index(event))
    }

    fn project<L: Matrix>(&self, value: &CatValue<M>) -> CatValue<L> {
        match value {
            CatValue::Set(set) => {
                let mut projected = L::Set::empty();
                for (index, event) in self.events.iter().enumerate() {
                    if set.contains(*event) {
                        projected.insert(index);
                    }
                }
                CatValue::Set(projected)
            }
            CatValue::Relation(relation) => {
                let mut projected = L::empty(self.events.len());
                for (i, source) in self.events.iter().enumerate() {
                    let row = relation.row(*source);
                    for (j, target) in self.events.iter().enumerate() {
                        if row.contains(*target) {
                            projected.insert(i, j);
                        }
                    }
                }
                CatValue::Relation(projected)
            }
        }
    }
}

struct LocalSolver<'p, 'a, M: Matrix, L: Matrix> {
    problem: &'p LocalProblem<'a, M>,
    tracker: &'p BudgetTracker<'p>,
    limit: u64,
    solutions: Vec<LocationSolution>,
    /// For each solution, the orders already counted, as far as the model distinguishes them.
    counted_orders: Vec<QuickSet<Vec<L>>>,
    /// The solution index of each choice of sources and last write.
    solution_index: QuickMap<(Vec<Option<usize>>, Option<u16>), usize>,
    complete: bool,
    chosen_sources: Vec<Option<usize>>,
    steps: u64,
}

impl<M: Matrix, L: Matrix> LocalSolver<'_, '_, M, L> {
    fn is_possible(&self, bounds: &Bounds<L>) -> bool {
        self.problem
            .local
            .axioms
            .iter()
            .all(|axiom| is_axiom_possible(&self.problem.prepared.plan.axioms[*axiom], bounds))
    }

    /// Returns true if the solution found represents all others.
    fn has_enough(&self) -> bool {
        self.problem.any_solution && !self.problem.observes_last_write && !self.solutions.is_empty()
    }

    fn spend_step(&mut self) -> bool {
        self.steps += 1;
        if self.tracker.spend(1) || self.steps > self.limit {
            self.complete = false;
        }
        !self.complete
    }

    /// Orders the open writes one by one, then chooses the sources of the reads.
    fn order_writes(&mut self, open: &[usize], bounds: &mut Bounds<L>, last: Option<usize>) {
        if self.has_enough() {
            return;
        }
        if open.is_empty() {
            self.choose_sources(0, bounds, last);
            return;
        }
        let saved = bounds.save(&self.problem.prepared.co);
        for (index, &write) in open.iter().enumerate() {
            if self.spend_step() {
                return;
            }
            let mut remaining = open.to_vec();
            remaining.remove(index);
            let mut possible = true;
            // The last write adds no pair.
            if !remaining.is_empty() {
                for id in &self.problem.prepared.co {
                    fix_next_write(bounds, *id, write, &remaining);
                }
                bounds.evaluate(&self.problem.prepared.plan, &self.problem.local.requested);
                possible = self.is_possible(bounds);
            }
            if possible {
                self.order_writes(&remaining, bounds, Some(write));
            }
            bounds.restore(&self.problem.prepared.co, &saved);
        }
    }

    fn choose_sources(&mut self, index: usize, bounds: &mut Bounds<L>, last: Option<usize>) {
        if self.has_enough() || self.spend_step() {
            return;
        }
        let problem = self.problem;
        let Some(read) = problem.reads.get(index) else {
            bounds.evaluate(&problem.prepared.plan, &problem.local.requested);
            if self.is_possible(bounds) {
                self.record_solution(bounds, last);
            }
            return;
        };
        // No axiom depends on the source, so all candidates stay in one solution (`ReadSource::AnyOf`).
        if !read.active || read.candidates.len() == 1 {
            self.chosen_sources[index] = None;
            self.choose_sources(index + 1, bounds, last);
            return;
        }
        let saved = bounds.save(&problem.prepared.rf);
        for &write in &read.candidates {
            let (Some(to), Some(from)) = (problem.event_index(read.read), problem.event_index(write)) else {
                continue;
            };
            for id in &problem.prepared.rf {
                fix_read_source(bounds, *id, to, from);
            }
            bounds.evaluate(&problem.prepared.plan, &problem.local.requested);
            if self.is_possible(bounds) {
                self.chosen_sources[index] = Some(write);
                self.choose_sources(index + 1, bounds, last);
            }
            bounds.restore(&problem.prepared.rf, &saved);
        }
    }

    fn record_solution(&mut self, bounds: &Bounds<L>, last: Option<usize>) {
        let problem = self.problem;
        let last_write =
            if problem.observes_last_write { last.map(|index| problem.events[index] as u16) } else { None };
        let next = self.solutions.len();
        let index = match self.solution_index.entry((self.chosen_sources.clone(), last_write)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(new) => {
                new.insert(next);
                let reads_from = problem
                    .reads
                    .iter()
                    .zip(&self.chosen_sources)
                    .map(|(read, chosen)| {
                        let source = match chosen {
                            Some(write) => ReadSource::Write(*write as u16),
                            None => ReadSource::AnyOf(read.candidates.iter().map(|w| *w as u16).collect()),
                        };
                        (read.read as u16, source)
                    })
                    .collect();
                self.solutions.push(LocationSolution { reads_from, last_write, orders: 0 });
                self.counted_orders.push(QuickSet::default());
                next
            }
        };
        let order = problem.prepared.co.iter().map(|id| self.distinguished_order(*id, bounds)).collect();
        // Orders that no axiom can distinguish count once.
        if self.counted_orders[index].insert(order) {
            self.solutions[index].orders += 1;
        }
    }

    /// Returns the part of the modification order that dependent nodes distinguish.
    fn distinguished_order(&self, co: NodeId, bounds: &Bounds<L>) -> L {
        let problem = self.problem;
        let mut distinguished = L::empty(bounds.n);
        for id in &problem.local.nodes {
            let node = problem.prepared.plan.node_at(*id);
            if node.operand_nodes().any(|operand| operand == co) {
                match (node, bounds.must(*id)) {
                    (
                        PlanNode::Intersection(..)
                        | PlanNode::RestrictRows(..)
                        | PlanNode::RestrictColumns(..),
                        CatValue::Relation(r),
                    ) => {
                        distinguished.union_with(r);
                    }
                    // Any other operation may depend on every pair of the order.
                    _ => return bounds.must(co).as_relation().cloned().unwrap_or(distinguished),
                }
            }
        }
        distinguished
    }
}
