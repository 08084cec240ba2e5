//! The consistent executions of one skeleton.
//!
//! What can matter across locations (reads-from of the reads that may synchronize, the modification orders that release
//! sequences live in) is chosen first, read by read and order by order, and cut off as soon as an axiom is broken by what
//! is already certain. What is left concerns one location at a time: each is solved alone on matrices of its own size, and
//! the solutions are multiplied. The cost is the sum over the locations, not their product.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use litmus::{LocationId, Undefinedness};

use crate::PredictError;
use crate::activity::Activity;
use crate::cat::{Axiom, AxiomKind, Base, Node, NodeId, Plan, Size, Value};
use crate::interval::Bounds;
use crate::local::{LocalPlan, LocalProblem, Solution};
use crate::matrix::{Bits, Matrix};
use crate::skeleton::Skeleton;

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub(crate) Option<Instant>);

impl Deadline {
    /// Whether the time is up.
    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// What the flags of a model say of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// It races.
    pub(crate) race: bool,
    /// It is undefined as a whole.
    pub(crate) undefined: bool,
}

impl Flags {
    /// The name of the flag that says that an execution is undefined as a whole; every other flag is a race.
    pub(crate) const UNDEFINED: &'static str = "undefined-execution";

    /// Adds a flag that is raised.
    pub(crate) fn raise(&mut self, axiom: &Axiom) {
        match axiom.name.as_deref() {
            Some(Flags::UNDEFINED) => self.undefined = true,
            _ => self.race = true,
        }
    }

    pub(crate) fn add(&mut self, other: Flags) {
        self.race |= other.race;
        self.undefined |= other.undefined;
    }

    /// Whether `other` has a flag that is not here.
    pub(crate) fn misses(self, other: Flags) -> bool {
        other.race && !self.race || other.undefined && !self.undefined
    }

    /// The level of undefinedness, for a model that has such levels; `None` also where it is not known.
    pub(crate) fn level(self, plan: &Plan, complete: bool) -> Option<Undefinedness> {
        let has_levels = plan.axioms.iter().any(|a| a.flag && a.name.as_deref() == Some(Flags::UNDEFINED));
        match self {
            _ if !has_levels => None,
            Flags { undefined: true, .. } => Some(Undefinedness::Program),
            Flags { race: true, .. } if complete => Some(Undefinedness::Value),
            _ => None,
        }
    }
}

/// The consistent executions that share their global choices.
pub(crate) struct Leaf {
    /// The flags that are raised in them.
    pub(crate) flagged: Flags,
    /// For each accessed storage its solutions, none of them empty.
    pub(crate) locations: Vec<Arc<Vec<Solution>>>,
}

/// A read and the writes it may read from.
#[derive(Clone, Debug)]
pub(crate) struct ReadChoice {
    pub(crate) read: usize,
    pub(crate) candidates: Vec<usize>,
}

/// What is searched, with everything that the program alone decides worked out.
pub(crate) struct Search<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    plan: &'a Plan,
    rf: Vec<NodeId>,
    co: Vec<NodeId>,
    bounds: Bounds<M>,
    activity: Activity<M>,
    /// Nodes that a choice can change, in order.
    open_nodes: Vec<NodeId>,
    local: LocalPlan,
    reads: Vec<ReadChoice>,
    storages: Vec<LocationId>,
    /// Storages whose last write must be told apart.
    observed: Vec<LocationId>,
    deadline: Deadline,
    memo: HashMap<(usize, Vec<M>), Arc<Vec<Solution>>>,
    timed_out: bool,
    /// Whether the first group of consistent executions is all that is wanted.
    first_alone: bool,
    found: bool,
}

/// What is chosen at one level of the search.
enum Step {
    /// Where a read reads from: index into `reads`.
    ReadsFrom(usize),
    /// The modification order of these writes.
    Order(Vec<usize>),
}

impl<'a, M: Matrix> Search<'a, M> {
    /// Prepares a search: evaluates what the program alone decides.
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        plan: &'a Plan,
        observed: Vec<LocationId>,
        deadline: Deadline,
    ) -> Result<Search<'a, M>, PredictError> {
        let n = skeleton.len();
        let mut bounds: Bounds<M> = Bounds::new(plan, n);
        let reads: Vec<ReadChoice> = (0..n)
            .filter(|&event| skeleton.events[event].tags.has(crate::skeleton::Tags::R))
            .map(|read| ReadChoice { read, candidates: skeleton.candidates(read) })
            .collect();
        let (mut rf, mut co) = (Vec::new(), Vec::new());
        for (index, node) in plan.nodes.iter().enumerate() {
            let id = NodeId(index as u32);
            match node {
                Node::BaseSet(base) => {
                    let set = base_set::<M>(plan, skeleton, *base)?;
                    bounds.set(id, Value::Set(set), Value::Set(set));
                }
                Node::BaseRelation(base) => match plan.name(base.name) {
                    "rf" => {
                        rf.push(id);
                        bounds.set(
                            id,
                            Value::Relation(rf_must(n, &reads)),
                            Value::Relation(rf_may(n, &reads)),
                        );
                    }
                    "co" => {
                        co.push(id);
                        let (must, may) = initial_order(skeleton);
                        bounds.set(id, Value::Relation(must), Value::Relation(may));
                    }
                    name => {
                        let relation: M = skeleton
                            .base_relation(name)
                            .ok_or_else(|| PredictError::UnknownBase { name: name.to_owned() })?;
                        bounds.set(id, Value::Relation(relation.clone()), Value::Relation(relation));
                    }
                },
                _ => {}
            }
        }
        let all: Vec<NodeId> = (0..plan.nodes.len()).map(|index| NodeId(index as u32)).collect();
        bounds.evaluate(plan, &all);
        let same_location: M = skeleton.base_relation("loc").unwrap_or_else(|| M::empty(n));
        let activity = Activity::new(plan, &bounds, &same_location);
        let open_nodes: Vec<NodeId> = all
            .iter()
            .copied()
            .filter(|id| activity.is_active(*id) && !rf.contains(id) && !co.contains(id))
            .collect();
        let storages = skeleton.storages();
        let leaves: Vec<NodeId> = rf.iter().chain(&co).copied().collect();
        let local = LocalPlan::new(plan, &activity, &leaves);
        Ok(Search {
            skeleton,
            plan,
            rf,
            co,
            bounds,
            activity,
            open_nodes,
            local,
            reads,
            storages,
            observed,
            deadline,
            memo: HashMap::new(),
            timed_out: false,
            first_alone: false,
            found: false,
        })
    }

    /// Visits every group of consistent executions. Returns false when the time was up before the end.
    pub(crate) fn run(&mut self, visit: &mut impl FnMut(Leaf)) -> bool {
        // A path that no value allows has a read without candidates.
        if self.reads.iter().any(|choice| choice.candidates.is_empty()) {
            return true;
        }
        let mut steps = Vec::new();
        for (index, choice) in self.reads.iter().enumerate() {
            let mut column = M::Set::empty();
            column.insert(choice.read);
            let active = self.rf.iter().any(|id| {
                self.activity.global[id.index()]
                    .relation()
                    .is_some_and(|pairs| !pairs.restrict_columns(column).is_empty())
            });
            if active && choice.candidates.len() > 1 {
                steps.push(Step::ReadsFrom(index));
            }
        }
        for &storage in &self.storages {
            let writes = self.ordered_writes(storage, true);
            if !writes.is_empty() {
                // The whole order of the location is chosen once any of it matters globally.
                steps.push(Step::Order(self.ordered_writes(storage, false)));
            }
        }
        let mut bounds = self.bounds.clone();
        self.descend(&steps, &mut bounds, visit);
        !self.timed_out
    }

    /// Whether there is a consistent execution; `None` when the time was up before the end.
    pub(crate) fn satisfiable(&mut self) -> Option<bool> {
        self.first_alone = true;
        let complete = self.run(&mut |_| {});
        (self.found || complete).then_some(self.found)
    }

    /// The writes of a storage whose order can matter: globally, or at all.
    fn ordered_writes(&self, storage: LocationId, global_only: bool) -> Vec<usize> {
        let mut involved = M::Set::empty();
        for id in &self.co {
            for (active, wanted) in
                [(&self.activity.global[id.index()], true), (&self.activity.local[id.index()], !global_only)]
            {
                if wanted && let Some(pairs) = active.relation() {
                    involved = involved.union(pairs.domain()).union(pairs.range());
                }
            }
        }
        let observed = !global_only && self.observed.contains(&storage);
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

    fn descend(&mut self, steps: &[Step], bounds: &mut Bounds<M>, visit: &mut impl FnMut(Leaf)) {
        if self.found && self.first_alone {
            return;
        }
        if self.timed_out || self.deadline.passed() {
            self.timed_out = true;
            return;
        }
        let Some((step, rest)) = steps.split_first() else {
            self.leaf(bounds, visit);
            return;
        };
        match step {
            Step::ReadsFrom(index) => {
                let choice = self.reads[*index].clone();
                let saved = bounds.save(&self.rf);
                for write in choice.candidates {
                    for id in &self.rf {
                        fix_read(bounds, *id, choice.read, write);
                    }
                    bounds.evaluate(self.plan, &self.open_nodes);
                    if self.possible(bounds) {
                        self.descend(rest, bounds, visit);
                    }
                    bounds.restore(&self.rf, &saved);
                }
            }
            Step::Order(writes) => {
                let writes = writes.clone();
                self.order(&writes, rest, bounds, visit);
            }
        }
    }

    /// Places the writes of one storage one after the other.
    fn order(&mut self, open: &[usize], rest: &[Step], bounds: &mut Bounds<M>, visit: &mut impl FnMut(Leaf)) {
        if open.is_empty() {
            self.descend(rest, bounds, visit);
            return;
        }
        let saved = bounds.save(&self.co);
        for (index, &write) in open.iter().enumerate() {
            if self.timed_out {
                return;
            }
            let mut remaining = open.to_vec();
            remaining.remove(index);
            for id in &self.co {
                fix_next(bounds, *id, write, &remaining);
            }
            let possible = remaining.is_empty() || {
                bounds.evaluate(self.plan, &self.open_nodes);
                self.possible(bounds)
            };
            if possible {
                self.order(&remaining, rest, bounds, visit);
            }
            bounds.restore(&self.co, &saved);
        }
    }

    /// Whether no axiom is broken by what is certain.
    fn possible(&self, bounds: &Bounds<M>) -> bool {
        self.plan.axioms.iter().filter(|axiom| !axiom.flag).all(|axiom| axiom_possible(axiom, bounds))
            && self.plan.sizes.iter().all(|size| size_possible(size, bounds))
    }

    fn leaf(&mut self, bounds: &mut Bounds<M>, visit: &mut impl FnMut(Leaf)) {
        bounds.evaluate(self.plan, &self.open_nodes);
        if !self.possible(bounds) {
            return;
        }
        let mut flagged = Flags::default();
        for axiom in self.plan.axioms.iter().filter(|axiom| axiom.flag && axiom_holds(axiom, bounds)) {
            flagged.raise(axiom);
        }
        let mut locations = Vec::with_capacity(self.storages.len());
        for index in 0..self.storages.len() {
            let solutions = self.solve_location(index, bounds);
            if self.timed_out || solutions.is_empty() {
                return;
            }
            locations.push(solutions);
        }
        self.found = true;
        visit(Leaf { flagged, locations });
    }

    fn solve_location(&mut self, index: usize, bounds: &Bounds<M>) -> Arc<Vec<Solution>> {
        let storage = self.storages[index];
        let problem = LocalProblem::new(
            self.plan,
            &self.local,
            self.skeleton,
            bounds,
            &self.activity,
            &self.reads,
            (&self.rf, &self.co),
            storage,
            self.ordered_writes(storage, false),
            self.observed.contains(&storage),
        );
        let key = (index, problem.inputs());
        if let Some(known) = self.memo.get(&key) {
            return known.clone();
        }
        let (solutions, complete) = problem.solve(self.deadline);
        if !complete {
            self.timed_out = true;
        }
        let solutions = Arc::new(solutions);
        self.memo.insert(key, solutions.clone());
        solutions
    }
}

/// Restricts `rf` so that `read` reads from `write`.
pub(crate) fn fix_read<M: Matrix>(bounds: &mut Bounds<M>, rf: NodeId, read: usize, write: usize) {
    if let Value::Relation(may) = &mut bounds.may[rf.index()] {
        for source in 0..bounds.n {
            if source != write {
                may.remove(source, read);
            }
        }
    }
    if let Value::Relation(must) = &mut bounds.must[rf.index()] {
        must.insert(write, read);
    }
}

/// Restricts `co` so that `write` comes before all of `remaining`.
pub(crate) fn fix_next<M: Matrix>(bounds: &mut Bounds<M>, co: NodeId, write: usize, remaining: &[usize]) {
    if let Value::Relation(may) = &mut bounds.may[co.index()] {
        for &later in remaining {
            may.remove(later, write);
        }
    }
    if let Value::Relation(must) = &mut bounds.must[co.index()] {
        for &later in remaining {
            must.insert(write, later);
        }
    }
}

/// Whether some completion may keep the axiom.
pub(crate) fn axiom_possible<M: Matrix>(axiom: &Axiom, bounds: &Bounds<M>) -> bool {
    let node = axiom.node.index();
    if axiom.negated {
        // The demand that something is there fails only when nothing can be.
        return !plain(axiom.kind, &bounds.may[node]);
    }
    plain(axiom.kind, &bounds.must[node])
}

/// Whether some completion may have the size.
fn size_possible<M: Matrix>(size: &Size, bounds: &Bounds<M>) -> bool {
    let count = |value: &Value<M>| match value {
        Value::Set(set) => set.len(),
        Value::Relation(relation) => relation.len(),
    };
    let node = size.node.index();
    (count(&bounds.must[node])..=count(&bounds.may[node])).any(|n| size.comparison.holds(n, size.number))
}

/// Whether what the axiom or flag says is so; every choice that matters to it is made.
fn axiom_holds<M: Matrix>(axiom: &Axiom, bounds: &Bounds<M>) -> bool {
    plain(axiom.kind, &bounds.must[axiom.node.index()]) != axiom.negated
}

fn plain<M: Matrix>(kind: AxiomKind, value: &Value<M>) -> bool {
    match (kind, value) {
        (AxiomKind::Acyclic, Value::Relation(relation)) => relation.is_acyclic(),
        (AxiomKind::Irreflexive, Value::Relation(relation)) => relation.is_irreflexive(),
        (_, value) => value.is_empty(),
    }
}

fn base_set<M: Matrix>(plan: &Plan, skeleton: &Skeleton, base: Base) -> Result<M::Set, PredictError> {
    let name = plan.name(base.name);
    skeleton.base_set(name, base.mask).ok_or_else(|| PredictError::UnknownBase { name: name.to_owned() })
}

fn rf_may<M: Matrix>(n: usize, reads: &[ReadChoice]) -> M {
    M::from_pairs(
        n,
        reads.iter().flat_map(|choice| choice.candidates.iter().map(|write| (*write, choice.read))),
    )
}

fn rf_must<M: Matrix>(n: usize, reads: &[ReadChoice]) -> M {
    M::from_pairs(
        n,
        reads
            .iter()
            .filter(|choice| choice.candidates.len() == 1)
            .flat_map(|choice| choice.candidates.iter().map(|write| (*write, choice.read))),
    )
}

/// What is certain and what is possible of `co`: initial writes first, in the order of their names.
fn initial_order<M: Matrix>(skeleton: &Skeleton) -> (M, M) {
    use crate::skeleton::Tags;
    let n = skeleton.len();
    let (mut must, mut may) = (M::empty(n), M::empty(n));
    for (i, first) in skeleton.events.iter().enumerate() {
        for (j, second) in skeleton.events.iter().enumerate() {
            if i == j
                || !first.tags.has(Tags::W)
                || !second.tags.has(Tags::W)
                || first.storage != second.storage
            {
                continue;
            }
            match (first.tags.has(Tags::IW), second.tags.has(Tags::IW)) {
                (true, false) => {
                    must.insert(i, j);
                    may.insert(i, j);
                }
                (true, true) if i < j => {
                    must.insert(i, j);
                    may.insert(i, j);
                }
                (false, false) => may.insert(i, j),
                _ => {}
            }
        }
    }
    (must, may)
}
