//! The clauses of a guarded program: reads-from, modification order, the model's axioms and values.

use std::rc::Rc;

use litmus::LocationId;
use solver::{Assignment, Bit, BitVector, CircuitSolver};

use super::orders::{TotalOrder, cyclic_components};
use super::program::GuardedProgram;
use crate::PredictError;
use crate::cat::{self, Axiom, AxiomKind, CatValue, NodeId, PlanNode, RecursionGroup};
use crate::choice::ReadChoice;
use crate::interval::Bounds;
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::search::{MissingEvents, StaticBounds};
use crate::skeleton::{Owner, Tags};

/// The clauses of a program on all of its paths.
pub(crate) struct GuardedEncoding<'a, M: Matrix> {
    pub(super) program: Rc<GuardedProgram>,
    pub(super) prepared: &'a PreparedPlan,
    bounds: Bounds<M>,
    pub(super) solver: CircuitSolver<'a>,
    pub(super) reads: Vec<ReadChoice>,
    /// For each node, true if the axioms need its lower bound alone.
    lower_bound_only: Vec<bool>,
    /// For each group, the number of iterations after which its nodes are encoded.
    iterations: Vec<usize>,
    /// The bits of pairs of nodes. Those of a group are distinguished by its number of iterations.
    terms: QuickMap<(u32, usize, u16, u16), Bit>,
    /// Pairs of closures and fixpoints without clauses yet.
    open_pairs: Vec<(NodeId, usize, usize, Bit)>,
    /// The paths of a closure with at most a power of two steps: its node, the exponent, and the two ends.
    paths: QuickMap<(u32, u32, u16, u16), Bit>,
    /// For each read, the writes that it may read from.
    pub(super) sources: QuickMap<usize, Vec<(usize, Bit)>>,
    /// The orders of the writes to each storage.
    orders: QuickMap<LocationId, TotalOrder>,
    /// The assumption that each axiom holds; `None` if all must hold.
    pub(super) assumed_axioms: Option<Vec<Bit>>,
    /// The flag axioms that can be raised, each with the assumption that raises it.
    pub(super) flags: Vec<(usize, Bit)>,
    /// The assumption that no value depends on itself, if any may.
    pub(super) grounded: Option<Bit>,
    pub(super) finals: Vec<Option<BitVector>>,
}

impl<'a, M: Matrix> GuardedEncoding<'a, M> {
    /// Encodes a program; `None` if the model is not supported. If axioms are assumed, executions may violate some.
    pub(super) fn new(
        program: Rc<GuardedProgram>,
        prepared: &'a PreparedPlan,
        solver: CircuitSolver<'a>,
        assumes_axioms: bool,
    ) -> Result<Option<GuardedEncoding<'a, M>>, PredictError> {
        let skeleton = &program.skeleton;
        let implied = program.implied_events(&solver.circuit);
        let is_certain = |name: &str, from: usize, to: usize| program.path_bit(name, from, to) == Bit::TRUE;
        let is_ordered = |first: usize, second: usize| program.are_ordered_writes(first, second);
        let missing = MissingEvents { implied, is_certain: &is_certain, is_ordered: &is_ordered };
        let static_bounds = StaticBounds::<M>::new(skeleton, prepared, Some(missing))?;
        if !is_encodable(prepared, &static_bounds) {
            return Ok(None);
        }
        let groups = &prepared.plan.groups;
        let iterations = groups.iter().map(|group| max_iterations(group, &static_bounds.bounds)).collect();
        let StaticBounds { bounds, requested, reads } = static_bounds;
        let mut lower_bound_only = vec![false; prepared.plan.nodes.len()];
        for wanted in requested {
            lower_bound_only[wanted.node.to_index()] = wanted.must && !wanted.may;
        }
        let mut encoding = GuardedEncoding {
            finals: program.finals.clone(),
            program,
            prepared,
            bounds,
            solver,
            reads,
            lower_bound_only,
            iterations,
            terms: QuickMap::default(),
            open_pairs: Vec::new(),
            paths: QuickMap::default(),
            sources: QuickMap::default(),
            orders: QuickMap::default(),
            assumed_axioms: assumes_axioms.then(Vec::new),
            flags: Vec::new(),
            grounded: None,
        };
        encoding.encode_program();
        Ok(Some(encoding))
    }

    /// Encodes the program and the axioms.
    fn encode_program(&mut self) {
        for clause in &self.program.requirements {
            self.solver.require_any(clause);
        }
        for choice in self.reads.clone() {
            self.encode_read(&choice);
        }
        self.encode_counters();
        self.encode_coherence();
        self.encode_groundedness();
        self.encode_last_writes();
        let plan = &self.prepared.plan;
        for (index, axiom) in plan.axioms.iter().enumerate() {
            if axiom.is_flag {
                let raised = self.solver.circuit.input();
                if self.encode_axiom(axiom, Some(raised)) {
                    self.flags.push((index, raised));
                }
            } else {
                let assumed = self.assumed_axioms.as_mut().map(|assumed| {
                    let holds = self.solver.circuit.input();
                    assumed.push(holds);
                    holds
                });
                self.encode_axiom(axiom, assumed);
            }
        }
        while !self.solver.is_exhausted()
            && let Some((node, from, to, whole)) = self.open_pairs.pop()
        {
            self.encode_open_pair(node, from, to, whole);
        }
    }

    /// Finds an execution of the goal without values out of thin air.
    ///
    /// Returns `None` if only executions with such values exist, and `Some(None)` if the budget ran out.
    pub(super) fn find_execution(&mut self, goal: &[Bit]) -> Option<Option<bool>> {
        if self.solver.is_exhausted() {
            return Some(None);
        }
        let found = self.solver.solve(goal);
        debug_assert!(
            found != Some(true)
                || self.assumed_axioms.is_some()
                || self.is_solution_consistent().unwrap_or(false),
            "the clauses must agree with the axioms"
        );
        match (found, self.grounded) {
            (Some(true), Some(grounded)) => {
                let goal: Vec<Bit> = goal.iter().copied().chain([grounded]).collect();
                match self.solver.solve(&goal) {
                    Some(false) => None,
                    found => Some(found),
                }
            }
            (found, _) => Some(found),
        }
    }

    /// Evaluates the model on the execution that the solver found: true if it is consistent and raises the flags.
    ///
    /// It shares nothing with the clauses but the choices.
    fn is_solution_consistent(&self) -> Result<bool, PredictError> {
        let (skeleton, candidate) = self.describe_solution();
        let (plan, assignment) = (&self.prepared.plan, self.solver.assignment());
        let values = candidate.evaluate::<M>(plan, &skeleton)?;
        let holds = |axiom: &Axiom| cat::axiom_holds(axiom, &values[axiom.node.to_index()]);
        Ok(plan.axioms.iter().filter(|axiom| !axiom.is_flag).all(holds)
            && self
                .flags
                .iter()
                .all(|(axiom, raised)| !assignment.bit(*raised) || holds(&plan.axioms[*axiom])))
    }

    /// Returns true if a write precedes another of its storage in the execution that the solver found.
    pub(super) fn is_before(&self, assignment: &Assignment, from: usize, to: usize) -> bool {
        let events = &self.program.skeleton.events;
        match (events[from].owner == Owner::Initial, events[to].owner == Owner::Initial) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => from < to,
            (false, false) => match events[from].storage.and_then(|storage| self.orders.get(&storage)) {
                Some(order) => assignment.bit(order.bit(from, to)),
                // No clause depends on the order.
                None => from < to,
            },
        }
    }

    /// Encodes that a read that executes has one source, whose value it returns.
    fn encode_read(&mut self, choice: &ReadChoice) {
        let program = self.program.clone();
        let executes = program.executes[choice.read];
        let sources: Vec<(usize, Bit)> =
            choice.candidates.iter().map(|write| (*write, self.solver.circuit.input())).collect();
        let mut some: Vec<Bit> = sources.iter().map(|(_, bit)| *bit).collect();
        for (index, (write, source)) in sources.iter().enumerate() {
            self.solver.require_any(&[!*source, executes]);
            self.solver.require_any(&[!*source, program.executes[*write]]);
            for (_, other) in &sources[index + 1..] {
                self.solver.require_any(&[!*source, !*other]);
            }
            self.require_equal(*source, &program.read[choice.read], &program.written[*write]);
        }
        some.push(!executes);
        self.solver.require_any(&some);
        self.sources.insert(choice.read, sources);
    }

    /// Requires that two values are equal if the bit holds.
    pub(super) fn require_equal(
        &mut self,
        condition: Bit,
        one: &Option<BitVector>,
        other: &Option<BitVector>,
    ) {
        let (Some(one), Some(other)) = (one, other) else { return };
        if let (Some(left), Some(right)) = (one.cases(), other.cases()) {
            for (cases, others) in [(left, right), (right, left)] {
                for (value, bit) in cases {
                    let same = others.iter().find(|(other, _)| other == value);
                    self.solver.require_any(&[!condition, !*bit, same.map_or(Bit::FALSE, |(_, bit)| *bit)]);
                }
            }
            return;
        }
        for (one, other) in one.bits().iter().zip(other.bits()) {
            if one != other {
                self.solver.require_any(&[!condition, !*one, *other]);
                self.solver.require_any(&[!condition, *one, !*other]);
            }
        }
    }

    /// Encodes the assumption that no value depends on itself: reads have positions that grow along dependencies.
    fn encode_groundedness(&mut self) {
        let depends = M::from_pairs(self.bounds.n, self.program.read_dependencies());
        for component in cyclic_components(&depends, self.bounds.n) {
            let grounded = *self.grounded.get_or_insert_with(|| self.solver.circuit.input());
            let before = TotalOrder::new(&mut self.solver, &component, |_, _| false);
            for &read in &component {
                for (write, source) in self.sources.get(&read).cloned().unwrap_or_default() {
                    for (from, bit) in self.program.sources[write].clone() {
                        if component.contains(&from) {
                            let ordered = before.bit(from, read);
                            self.solver.require_any(&[!grounded, !source, !bit, ordered]);
                        }
                    }
                }
            }
        }
    }

    /// Returns the writes to a storage, initial ones included.
    pub(super) fn writes_of(&self, storage: Option<LocationId>) -> Vec<usize> {
        let events = self.program.skeleton.events.iter().enumerate();
        events
            .filter(|(_, event)| event.storage == storage && event.tags.has(Tags::W))
            .map(|(number, _)| number)
            .collect()
    }

    /// Returns the bit that a write precedes another of its storage.
    pub(super) fn co_bit(&mut self, from: usize, to: usize) -> Bit {
        let events = &self.program.skeleton.events;
        match (events[from].owner == Owner::Initial, events[to].owner == Owner::Initial) {
            (true, true) => return Bit::from(from < to),
            (true, false) => return Bit::TRUE,
            (false, true) => return Bit::FALSE,
            (false, false) => {}
        }
        let Some(storage) = events[from].storage else { return Bit::FALSE };
        if !self.orders.contains_key(&storage) {
            let mut writes = self.writes_of(Some(storage));
            writes.retain(|write| self.program.skeleton.events[*write].owner != Owner::Initial);
            let program = self.program.clone();
            let is_certain = |first: usize, second: usize| program.are_ordered_writes(first, second);
            let order = TotalOrder::new(&mut self.solver, &writes, is_certain);
            self.orders.insert(storage, order);
        }
        self.orders.get(&storage).map_or(Bit::FALSE, |order| order.bit(from, to))
    }

    /// Returns the bits that writes of one thread to one storage are ordered as in the program.
    pub(super) fn program_order_of_writes(&mut self) -> Vec<Bit> {
        let program = self.program.clone();
        let events = &program.skeleton.events;
        let is_pair = |first: usize, second: usize| {
            let [one, other] = [first, second].map(|event| &events[event]);
            first < second && one.owner == other.owner && matches!(one.owner, Owner::Thread(_))
        };
        let mut ordered = Vec::new();
        for storage in program.skeleton.storages() {
            let writes = self.writes_of(Some(storage));
            for (first, second) in
                writes.iter().flat_map(|one| writes.iter().map(move |other| (*one, *other)))
            {
                ordered.extend(is_pair(first, second).then(|| self.co_bit(first, second)));
            }
        }
        ordered
    }

    /// Encodes an axiom, conditional on `when`; returns false if it cannot hold.
    fn encode_axiom(&mut self, axiom: &Axiom, when: Option<Bit>) -> bool {
        let unless: Vec<Bit> = when.iter().map(|bit| !*bit).collect();
        let n = self.bounds.n;
        if axiom.kind == AxiomKind::Acyclic {
            self.encode_acyclic(axiom, &unless);
            return true;
        }
        let mut pairs: Vec<(usize, usize)> = match self.bounds.may(axiom.node) {
            CatValue::Relation(may) => may.pairs().collect(),
            CatValue::Set(may) => {
                (0..n).filter(|event| may.contains(*event)).map(|event| (event, event)).collect()
            }
        };
        if axiom.kind == AxiomKind::Irreflexive {
            pairs.retain(|(from, to)| from == to);
        }
        let mut some = unless.clone();
        for (from, to) in pairs {
            if self.solver.is_exhausted() {
                return true;
            }
            let term = self.pair_term(axiom.node, from, to);
            let executes = [self.program.executes[from], self.program.executes[to]];
            let holds = self.solver.circuit.all(&[term, executes[0], executes[1]]);
            if axiom.negated {
                some.push(holds);
            } else if holds != Bit::FALSE {
                let mut clause = unless.clone();
                clause.extend([!term, !executes[0], !executes[1]]);
                self.solver.require_any(&clause);
            }
        }
        if axiom.negated {
            some.retain(|bit| *bit != Bit::FALSE);
            self.solver.require_any(&some);
            return some.len() > unless.len();
        }
        true
    }

    /// Encodes an acyclic relation.
    fn encode_acyclic(&mut self, axiom: &Axiom, unless: &[Bit]) {
        let Some(may) = self.bounds.may(axiom.node).as_relation().cloned() else { return };
        // A cycle lies within one strongly connected component of the upper bound.
        for component in cyclic_components(&may, self.bounds.n) {
            let before = TotalOrder::new(&mut self.solver, &component, |_, _| false);
            for &from in &component {
                for &to in &component {
                    if !may.contains(from, to) || self.solver.is_exhausted() {
                        continue;
                    }
                    let edge = self.pair_term(axiom.node, from, to);
                    let ordered = before.bit(from, to);
                    let executes = [self.program.executes[from], self.program.executes[to]];
                    let mut clause = unless.to_vec();
                    clause.extend([!edge, !executes[0], !executes[1], ordered]);
                    self.solver.require_any(&clause);
                }
            }
        }
    }

    /// Returns the bit of a pair of a relation, which has a meaning only if both events execute. The pairs of a set are
    /// those of its identity relation.
    fn pair_term(&mut self, id: NodeId, from: usize, to: usize) -> Bit {
        let within = |value: &CatValue<M>| match value {
            CatValue::Relation(pairs) => pairs.contains(from, to),
            CatValue::Set(members) => members.contains(from),
        };
        if within(self.bounds.must(id)) {
            return Bit::TRUE;
        }
        if !within(self.bounds.may(id)) {
            return Bit::FALSE;
        }
        let groups = &self.prepared.plan.groups;
        let group = groups.iter().position(|group| group.nodes.contains(&id.0));
        let iteration = group.map_or(0, |group| self.iterations[group]);
        let key = (id.0, iteration, from as u16, to as u16);
        if let Some(known) = self.terms.get(&key) {
            return *known;
        }
        let executes = &self.program.executes;
        let both = self.solver.circuit.and(executes[from], executes[to]);
        let lower_only = self.lower_bound_only[id.to_index()];
        let term = match self.prepared.plan.node_at(id) {
            // No execution has both events.
            _ if both == Bit::FALSE => Bit::FALSE,
            PlanNode::BaseRelation(_) if self.prepared.rf.contains(&id) => self.reads_from_bit(from, to),
            PlanNode::BaseRelation(_) if self.prepared.co.contains(&id) => self.co_bit(from, to),
            PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
                self.program.path_bit(self.prepared.plan.name_text(base.name), from, to)
            }
            PlanNode::Union(_, a, b) => {
                let terms = [self.pair_term(a, from, to), self.pair_term(b, from, to)];
                self.any_of(lower_only, &terms)
            }
            PlanNode::Intersection(_, a, b) => {
                let terms = [self.pair_term(a, from, to), self.pair_term(b, from, to)];
                self.solver.circuit.all(&terms)
            }
            PlanNode::Difference(_, a, b) => {
                let (one, other) = (self.pair_term(a, from, to), self.pair_term(b, from, to));
                self.solver.circuit.and(one, !other)
            }
            PlanNode::Complement(_, a) => !self.pair_term(a, from, to),
            PlanNode::Inverse(a) => self.pair_term(a, to, from),
            PlanNode::Optional(a) => self.pair_term(a, from, to),
            PlanNode::IdentityOn(a) => self.pair_term(a, from, from),
            PlanNode::Product(a, b) => {
                let (one, other) = (self.pair_term(a, from, from), self.pair_term(b, to, to));
                self.solver.circuit.and(one, other)
            }
            PlanNode::RestrictRows(set, pairs) => {
                let (one, other) = (self.pair_term(set, from, from), self.pair_term(pairs, from, to));
                self.solver.circuit.and(one, other)
            }
            PlanNode::RestrictColumns(pairs, set) => {
                let (one, other) = (self.pair_term(set, to, to), self.pair_term(pairs, from, to));
                self.solver.circuit.and(one, other)
            }
            PlanNode::Sequence(a, b) => {
                let mut terms = Vec::new();
                for between in self.possible_successors(a, from) {
                    let second = self.pair_term(b, between, to);
                    if second == Bit::FALSE {
                        continue;
                    }
                    let first = self.pair_term(a, from, between);
                    let executes = self.executes_too(between, from, to);
                    terms.push(self.solver.circuit.all(&[first, second, executes]));
                }
                self.any_of(lower_only, &terms)
            }
            PlanNode::Domain(a) => self.end_term(from, (0..self.bounds.n).map(|other| (a, from, other))),
            PlanNode::Range(a) => self.end_term(to, (0..self.bounds.n).map(|other| (a, other, to))),
            PlanNode::Plus(relation) | PlanNode::Star(relation) if !lower_only => {
                let sources =
                    (0..self.bounds.n).filter(|event| !self.possible_successors(relation, *event).is_empty());
                let exponent = sources.count().next_power_of_two().ilog2();
                self.path_term(id, relation, exponent, from, to)
            }
            PlanNode::Plus(_) | PlanNode::Star(_) => {
                let whole = self.solver.circuit.input();
                self.open_pairs.push((id, from, to, whole));
                whole
            }
            // No pair is there before the first iteration, and each iteration has those that the bodies compute from it.
            PlanNode::Recursive { .. } if !lower_only && iteration == 0 => Bit::FALSE,
            PlanNode::Recursive { group, index, .. } if !lower_only => {
                let group = group.0 as usize;
                self.iterations[group] -= 1;
                let body = self.pair_term(groups[group].bodies[index as usize], from, to);
                self.iterations[group] += 1;
                body
            }
            // A fixpoint is encoded from below too: see `encode_open_pair`.
            PlanNode::Recursive { .. } => {
                let whole = self.solver.circuit.input();
                self.open_pairs.push((id, from, to, whole));
                whole
            }
            // Static nodes are never open.
            _ => Bit::FALSE,
        };
        self.terms.insert(key, term);
        term
    }

    /// Returns the bit that some of these pairs exists, given that one of its events, `end`, executes.
    fn end_term(&mut self, end: usize, pairs: impl Iterator<Item = (NodeId, usize, usize)>) -> Bit {
        let mut terms = Vec::new();
        for (relation, from, to) in pairs {
            let pair = self.pair_term(relation, from, to);
            let executes = self.executes_too(if from == end { to } else { from }, end, end);
            terms.push(self.solver.circuit.and(pair, executes));
        }
        self.solver.circuit.any(&terms)
    }

    /// Returns a bit that holds if an event executes, given that two others do.
    fn executes_too(&self, event: usize, one: usize, other: usize) -> Bit {
        let executes = &self.program.executes;
        let is_given = [one, other].iter().any(|given| {
            executes[*given] == executes[event]
                || self.solver.circuit.conjuncts(executes[*given]).contains(&executes[event])
        });
        if is_given { Bit::TRUE } else { executes[event] }
    }

    /// Returns the disjunction; with `lower`, a bit that it implies.
    fn any_of(&mut self, lower: bool, terms: &[Bit]) -> Bit {
        let whole = self.solver.circuit.any(terms);
        if !lower
            || whole.constant().is_some()
            || terms.iter().filter(|term| **term != Bit::FALSE).count() < 2
        {
            return whole;
        }
        let lower = self.solver.circuit.input();
        for term in terms {
            let mut clause: Vec<Bit> = self.solver.circuit.conjuncts(*term).iter().map(|bit| !*bit).collect();
            clause.push(lower);
            self.solver.require_any(&clause);
        }
        lower
    }

    /// Returns the bit that a path of at most this power of two steps leads from an event to another.
    fn path_term(&mut self, closure: NodeId, relation: NodeId, exponent: u32, from: usize, to: usize) -> Bit {
        let within = |value: &CatValue<M>| value.as_relation().is_some_and(|pairs| pairs.contains(from, to));
        if within(self.bounds.must(closure)) {
            return Bit::TRUE;
        }
        if !within(self.bounds.may(closure)) {
            return Bit::FALSE;
        }
        let Some(shorter) = exponent.checked_sub(1) else { return self.pair_term(relation, from, to) };
        let key = (closure.0, exponent, from as u16, to as u16);
        if let Some(known) = self.paths.get(&key) {
            return *known;
        }
        let mut terms = vec![self.path_term(closure, relation, shorter, from, to)];
        for between in self.possible_successors(closure, from) {
            let second = self.path_term(closure, relation, shorter, between, to);
            if second == Bit::FALSE {
                continue;
            }
            let first = self.path_term(closure, relation, shorter, from, between);
            let executes = self.executes_too(between, from, to);
            terms.push(self.solver.circuit.all(&[first, second, executes]));
        }
        let path = self.solver.circuit.any(&terms);
        self.paths.insert(key, path);
        path
    }

    /// Encodes a pair of a closure or fixpoint from below: a closure contains each step of its relation, followed by the
    /// closure, and a fixpoint the pairs of its body.
    fn encode_open_pair(&mut self, id: NodeId, from: usize, to: usize, whole: Bit) {
        let plan = &self.prepared.plan;
        let relation = match plan.node_at(id) {
            PlanNode::Plus(relation) | PlanNode::Star(relation) => relation,
            PlanNode::Recursive { group, index, .. } => {
                let body = plan.groups[group.0 as usize].bodies[index as usize];
                let term = self.pair_term(body, from, to);
                return self.solver.require_any(&[!term, whole]);
            }
            _ => return,
        };
        for between in self.possible_successors(relation, from) {
            let rest = if between == to { Bit::TRUE } else { self.pair_term(id, between, to) };
            if rest == Bit::FALSE {
                continue;
            }
            let step = self.pair_term(relation, from, between);
            let executes = self.executes_too(between, from, to);
            self.solver.require_any(&[!step, !rest, !executes, whole]);
        }
    }

    fn possible_successors(&self, id: NodeId, from: usize) -> Vec<usize> {
        self.bounds.may(id).as_relation().map_or(Vec::new(), |may| may.row(from).iter().collect())
    }

    pub(super) fn reads_from_bit(&self, write: usize, read: usize) -> Bit {
        let sources = self.sources.get(&read).map_or(&[][..], Vec::as_slice);
        sources.iter().find(|(source, _)| *source == write).map_or(Bit::FALSE, |(_, bit)| *bit)
    }
}

/// Limit of events for closures of which the axioms need both bounds: each has a bit for several lengths of each path.
const MAX_EXACT_CLOSURE_EVENTS: usize = 64;

/// Limit of iterations of fixpoints of which the axioms need both bounds.
const MAX_EXACT_ITERATIONS: usize = 128;

/// Returns a number of iterations after which a group has its least fixpoint: each one before adds a pair.
fn max_iterations<M: Matrix>(group: &RecursionGroup, bounds: &Bounds<M>) -> usize {
    let members = (group.nodes.start..).take(group.bodies.len()).map(NodeId);
    let pairs = members.map(|member| match bounds.may(member) {
        CatValue::Set(may) => may.len(),
        CatValue::Relation(may) => may.len(),
    });
    pairs.sum::<usize>() + 1
}

/// Returns true if the clauses are equivalent to the axioms.
fn is_encodable<M: Matrix>(prepared: &PreparedPlan, static_bounds: &StaticBounds<M>) -> bool {
    let plan = &prepared.plan;
    plan.size_constraints.is_empty()
        // The negation of acyclicity needs a cycle, for which there is no encoding from below.
        && plan.axioms.iter().all(|axiom| !(axiom.negated && axiom.kind == AxiomKind::Acyclic))
        && static_bounds.requested.iter().all(|wanted| match plan.node_at(wanted.node) {
            // From below, a closure contains at least the implied pairs. The solver may add others, which can only
            // violate an axiom that uses the lower bound, but satisfy one that uses the upper bound.
            PlanNode::Plus(_) | PlanNode::Star(_) => !wanted.may || static_bounds.bounds.n <= MAX_EXACT_CLOSURE_EVENTS,
            PlanNode::Recursive { group, .. } => {
                let iterations = max_iterations(&plan.groups[group.0 as usize], &static_bounds.bounds);
                !wanted.may || iterations <= MAX_EXACT_ITERATIONS
            }
            PlanNode::Immediate(_) => false,
            _ => true,
        })
}
