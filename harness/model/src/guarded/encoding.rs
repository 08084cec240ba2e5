//! The clauses of a guarded program: reads-from, modification order, the model's axioms and values.

use litmus::{BranchRelation, Comparison, ConditionSide, LocationId, ResolvedCondition, ScalarType};
use solver::{Bit, BitVector, CircuitSolver, SatSolver};

use super::program::GuardedProgram;
use crate::PredictError;
use crate::cat::{Axiom, AxiomKind, CatValue, NodeId, PlanNode};
use crate::choice::{ReadChoice, co_bounds, is_axiom_possible, rf_may, rf_must, static_base_value};
use crate::interval::{Bounds, RequestedBounds, nodes_to_evaluate};
use crate::matrix::{Bits, Matrix};
use crate::path::unroll::compare;
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::sat_encoding::{cyclic_components, dependency_cycles};
use crate::skeleton::{Event, FinalValueSource, Owner, Tags};

/// Larger cycles are excluded by positions, whose clauses are fewer than those of a total order.
const MAX_ORDERED_EVENTS: usize = 40;

/// Limit of writes to a storage: their order has a clause for each three of them.
const MAX_WRITES: usize = 96;

/// The clauses of a program on all of its paths.
pub(crate) struct GuardedEncoding<'a, M: Matrix, S> {
    program: &'a GuardedProgram,
    prepared: &'a PreparedPlan,
    bounds: Bounds<M>,
    solver: CircuitSolver<S>,
    reads: Vec<ReadChoice>,
    /// For each node, true if the axioms need its lower bound alone.
    lower_bound_only: Vec<bool>,
    terms: QuickMap<(u32, u16, u16), Bit>,
    open_closure_pairs: Vec<(NodeId, usize, usize, Bit)>,
    /// For each read, the writes that it may read from.
    sources: QuickMap<usize, Vec<(usize, Bit)>>,
    /// For each pair of writes to a storage, the lower event first: the bit that the first precedes the second.
    orders: QuickMap<(usize, usize), Bit>,
    /// The flag axioms that can be raised, each with the assumption that raises it.
    pub(super) flags: Vec<(usize, Bit)>,
    /// The assumption that no value depends on itself, if any may.
    grounded: Option<Bit>,
    finals: Vec<Option<BitVector>>,
}

/// The base relations that depend on the path of a thread.
const PATH_RELATIONS: [&str; 4] = ["addr", "ctrl", "data", "DECISIVE"];

impl<'a, M: Matrix, S: SatSolver> GuardedEncoding<'a, M, S> {
    /// Encodes a program; `None` if the model is not supported.
    pub(super) fn new(
        program: &'a GuardedProgram,
        prepared: &'a PreparedPlan,
        solver: CircuitSolver<S>,
    ) -> Result<Option<GuardedEncoding<'a, M, S>>, PredictError> {
        let (plan, skeleton, n) = (&prepared.plan, &program.skeleton, program.skeleton.len());
        let depends_on_path =
            |base: &crate::cat::BaseReference| PATH_RELATIONS.contains(&plan.name_text(base.name));
        if prepared.static_bases.iter().any(|(_, base)| depends_on_path(base)) {
            return Ok(None);
        }
        let writes_to = |storage: &LocationId| {
            let is_write = |event: &&Event| event.storage == Some(*storage) && event.tags.has(Tags::W);
            skeleton.events.iter().filter(is_write).count()
        };
        if skeleton.storages().iter().any(|storage| writes_to(storage) > MAX_WRITES) {
            return Ok(None);
        }
        let mut bounds: Bounds<M> = Bounds::new(prepared, n);
        bounds.set_implied_events(implied_events(program, &solver));
        let reads: Vec<ReadChoice> = (0..n)
            .filter(|event| program.read[*event].is_some())
            .map(|read| ReadChoice { read, candidates: skeleton.candidate_writes(read) })
            .collect();
        for (id, base) in &prepared.static_bases {
            let value = static_base_value::<M>(plan, skeleton, plan.node_at(*id).kind(), *base)?;
            bounds.set(*id, value.clone(), value);
        }
        for id in &prepared.rf {
            bounds.set(*id, CatValue::Relation(rf_must(n, &reads)), CatValue::Relation(rf_may(n, &reads)));
        }
        for id in &prepared.co {
            let (must, may) = co_bounds(skeleton);
            bounds.set(*id, CatValue::Relation(must), CatValue::Relation(may));
        }
        bounds.evaluate_all(plan);
        let roots = plan.axioms.iter().map(|axiom| RequestedBounds {
            node: axiom.node,
            must: !axiom.negated,
            may: axiom.negated,
        });
        let requested = nodes_to_evaluate(prepared, roots, |id| bounds.must(id) != bounds.may(id));
        let mut lower_bound_only = vec![false; plan.nodes.len()];
        for wanted in &requested {
            lower_bound_only[wanted.node.to_index()] = wanted.must && !wanted.may;
        }
        let is_encodable = plan.size_constraints.is_empty()
            && plan.axioms.iter().all(|axiom| !(axiom.negated && axiom.kind == AxiomKind::Acyclic))
            && requested.iter().all(|wanted| match plan.node_at(wanted.node) {
                PlanNode::Plus(_) | PlanNode::Star(_) => !wanted.may,
                PlanNode::Immediate(_) | PlanNode::Recursive { .. } => false,
                _ => true,
            });
        if !is_encodable {
            return Ok(None);
        }
        let mut encoding = GuardedEncoding {
            program,
            prepared,
            bounds,
            solver,
            reads,
            lower_bound_only,
            terms: QuickMap::default(),
            open_closure_pairs: Vec::new(),
            sources: QuickMap::default(),
            orders: QuickMap::default(),
            flags: Vec::new(),
            grounded: None,
            finals: program.finals.clone(),
        };
        encoding.encode_program();
        Ok(Some(encoding))
    }

    fn encode_program(&mut self) {
        for clause in &self.program.requirements {
            self.solver.require_any(clause);
        }
        for choice in self.reads.clone() {
            self.encode_read(&choice);
        }
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
                self.encode_axiom(axiom, None);
            }
        }
        while !self.solver.is_exhausted()
            && let Some((node, from, to, whole)) = self.open_closure_pairs.pop()
        {
            self.encode_closure_pair(node, from, to, whole);
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
            found != Some(true) || self.is_solution_consistent().unwrap_or(false),
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

    /// Evaluates the model on the execution that the solver found: true if it is consistent.
    ///
    /// It shares nothing with the clauses but the choices: its events are those that execute.
    fn is_solution_consistent(&self) -> Result<bool, PredictError> {
        let (program, plan) = (self.program, &self.prepared.plan);
        let (skeleton, assignment) = (&program.skeleton, self.solver.assignment());
        let events: Vec<usize> =
            (0..skeleton.len()).filter(|event| assignment.bit(program.executes[*event])).collect();
        let project_relation = |related: &dyn Fn(usize, usize) -> bool| {
            let pairs = (0..events.len()).flat_map(|from| (0..events.len()).map(move |to| (from, to)));
            M::from_pairs(events.len(), pairs.filter(|(from, to)| related(events[*from], events[*to])))
        };
        let mut bounds: Bounds<M> = Bounds::new(self.prepared, events.len());
        for (id, base) in &self.prepared.static_bases {
            let value = match static_base_value::<M>(plan, skeleton, plan.node_at(*id).kind(), *base)? {
                CatValue::Relation(pairs) => {
                    CatValue::Relation(project_relation(&|from, to| pairs.contains(from, to)))
                }
                CatValue::Set(members) => {
                    let mut projected = M::Set::empty();
                    let inside = (0..events.len()).filter(|event| members.contains(events[*event]));
                    inside.for_each(|event| projected.insert(event));
                    CatValue::Set(projected)
                }
            };
            bounds.set(*id, value.clone(), value);
        }
        let reads_from = project_relation(&|from, to| assignment.bit(self.reads_from_bit(from, to)));
        let precedes = project_relation(&|from, to| {
            let (one, other) = (&skeleton.events[from], &skeleton.events[to]);
            from != to
                && one.storage == other.storage
                && one.tags.has(Tags::W)
                && other.tags.has(Tags::W)
                && match (one.owner == Owner::Initial, other.owner == Owner::Initial) {
                    (false, false) if self.orders.contains_key(&(from.min(to), from.max(to))) => {
                        assignment.bit(ordered_bit(&self.orders, from, to))
                    }
                    (true, false) => true,
                    (false, true) => false,
                    (true, true) | (false, false) => from < to,
                }
        });
        for (ids, value) in [(&self.prepared.rf, reads_from), (&self.prepared.co, precedes)] {
            for id in ids {
                bounds.set(*id, CatValue::Relation(value.clone()), CatValue::Relation(value.clone()));
            }
        }
        bounds.evaluate_all(plan);
        Ok(plan.axioms.iter().filter(|axiom| !axiom.is_flag).all(|axiom| is_axiom_possible(axiom, &bounds))
            && self.flags.iter().all(|(axiom, raised)| {
                !assignment.bit(*raised) || is_axiom_possible(&plan.axioms[*axiom], &bounds)
            }))
    }

    /// Encodes that a read that executes has one source, whose value it returns.
    fn encode_read(&mut self, choice: &ReadChoice) {
        let program = self.program;
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
    fn require_equal(&mut self, condition: Bit, one: &Option<BitVector>, other: &Option<BitVector>) {
        let (Some(one), Some(other)) = (one, other) else { return };
        for (one, other) in one.bits().iter().zip(other.bits()) {
            if one != other {
                self.solver.require_any(&[!condition, !*one, *other]);
                self.solver.require_any(&[!condition, *one, !*other]);
            }
        }
    }

    /// Encodes the assumption that no value depends on itself: reads have positions that grow along dependencies.
    fn encode_groundedness(&mut self) {
        for component in dependency_cycles(&self.program.read_dependencies()) {
            let grounded = *self.grounded.get_or_insert_with(|| self.solver.circuit.input());
            let before = self.new_order(&component);
            for &read in &component {
                for (write, source) in self.sources.get(&read).cloned().unwrap_or_default() {
                    for (from, bit) in self.program.sources[write].clone() {
                        if component.contains(&from) {
                            let ordered = self.order_bit(&before, from, read);
                            self.solver.require_any(&[!grounded, !source, !bit, ordered]);
                        }
                    }
                }
            }
        }
    }

    /// Encodes the final values of storages by their last writes.
    fn encode_last_writes(&mut self) {
        let program = self.program;
        for index in 0..self.finals.len() {
            let Some(FinalValueSource::LastWrite(storage)) = program.skeleton.final_values.get(index) else {
                continue;
            };
            if self.finals[index].is_some() {
                continue;
            }
            let value = self.solver.circuit.variable(u64::BITS as usize);
            let writes = self.writes_of(Some(*storage));
            for &write in &writes {
                let mut later = vec![!program.executes[write]];
                for &other in writes.iter().filter(|other| **other != write) {
                    let follows = self.co_bit(write, other);
                    later.push(self.solver.circuit.and(program.executes[other], follows));
                }
                let is_last = !self.solver.circuit.any(&later);
                self.require_equal(is_last, &Some(value.clone()), &program.written[write]);
            }
            self.finals[index] = Some(value);
        }
    }

    /// Returns a bit that holds if the final values satisfy a condition.
    pub(super) fn condition_bit(&mut self, condition: &ResolvedCondition) -> Bit {
        match condition {
            ResolvedCondition::Constant(holds) => Bit::from(*holds),
            ResolvedCondition::Not(inner) => !self.condition_bit(inner),
            ResolvedCondition::And(both) => {
                let (one, other) = (self.condition_bit(&both.0), self.condition_bit(&both.1));
                self.solver.circuit.and(one, other)
            }
            ResolvedCondition::Or(both) => {
                let (one, other) = (self.condition_bit(&both.0), self.condition_bit(&both.1));
                self.solver.circuit.or(one, other)
            }
            ResolvedCondition::Compare(left, comparison, right) => {
                let (left, right) = (self.side_value(*left), self.side_value(*right));
                let relation = match comparison {
                    Comparison::Equal => BranchRelation::Equal,
                    Comparison::NotEqual => BranchRelation::NotEqual,
                    Comparison::Less => BranchRelation::Less,
                    Comparison::LessOrEqual => BranchRelation::LessOrEqual,
                    Comparison::Greater => BranchRelation::Greater,
                    Comparison::GreaterOrEqual => BranchRelation::GreaterOrEqual,
                };
                compare(&mut self.solver.circuit, relation, &left, &right, ScalarType::U64)
            }
        }
    }

    /// Returns a side of a comparison as a signed number of 64 bits.
    fn side_value(&self, side: ConditionSide) -> BitVector {
        match side {
            ConditionSide::Number(number) => BitVector::constant(64, number as u64 as u128),
            ConditionSide::Observed(index, scalar) => match self.finals.get(index) {
                Some(Some(value)) => value.resize(scalar.bits() as usize).resize_signed(64),
                _ => BitVector::constant(64, 0),
            },
        }
    }

    /// Returns the writes to a storage, initial ones included.
    fn writes_of(&self, storage: Option<LocationId>) -> Vec<usize> {
        let events = self.program.skeleton.events.iter().enumerate();
        events
            .filter(|(_, event)| event.storage == storage && event.tags.has(Tags::W))
            .map(|(number, _)| number)
            .collect()
    }

    /// Returns the bit that a write precedes another of its storage.
    fn co_bit(&mut self, from: usize, to: usize) -> Bit {
        let events = &self.program.skeleton.events;
        match (events[from].owner == Owner::Initial, events[to].owner == Owner::Initial) {
            (true, true) => return Bit::from(from < to),
            (true, false) => return Bit::TRUE,
            (false, true) => return Bit::FALSE,
            (false, false) => {}
        }
        if !self.orders.contains_key(&(from.min(to), from.max(to))) {
            let mut writes = self.writes_of(events[from].storage);
            writes.retain(|write| events[*write].owner != Owner::Initial);
            let order = self.new_total_order(&writes);
            self.orders.extend(order);
        }
        ordered_bit(&self.orders, from, to)
    }

    fn new_total_order(&mut self, events: &[usize]) -> QuickMap<(usize, usize), Bit> {
        let mut before = QuickMap::default();
        for (index, &first) in events.iter().enumerate() {
            for &second in &events[index + 1..] {
                before.insert((first, second), self.solver.circuit.input());
            }
        }
        for (i, &a) in events.iter().enumerate() {
            for (j, &b) in events.iter().enumerate().skip(i + 1) {
                for &c in &events[j + 1..] {
                    let [ab, bc, ac] = [(a, b), (b, c), (a, c)].map(|(x, y)| ordered_bit(&before, x, y));
                    // A total relation without a cycle of three events is transitive.
                    self.solver.require_any(&[!ab, !bc, ac]);
                    self.solver.require_any(&[ab, bc, !ac]);
                }
            }
        }
        before
    }

    /// Returns an order in which no cycle of these events is possible.
    fn new_order(&mut self, events: &[usize]) -> CycleOrder {
        if events.len() <= MAX_ORDERED_EVENTS {
            return CycleOrder::Total(self.new_total_order(events));
        }
        let width = (usize::BITS - events.len().leading_zeros()) as usize;
        let positions = events.iter().map(|event| (*event, self.solver.circuit.variable(width)));
        CycleOrder::Positions(positions.collect())
    }

    fn order_bit(&mut self, order: &CycleOrder, from: usize, to: usize) -> Bit {
        match order {
            _ if from == to => Bit::FALSE,
            CycleOrder::Total(before) => ordered_bit(before, from, to),
            CycleOrder::Positions(positions) => match (positions.get(&from), positions.get(&to)) {
                (Some(from), Some(to)) => self.solver.circuit.less_than(from, to),
                _ => Bit::TRUE,
            },
        }
    }

    /// Encodes an axiom, conditional on `when`; returns false if it cannot hold.
    fn encode_axiom(&mut self, axiom: &Axiom, when: Option<Bit>) -> bool {
        let unless: Vec<Bit> = when.iter().map(|bit| !*bit).collect();
        let n = self.bounds.n;
        let is_set = matches!(self.bounds.may(axiom.node), CatValue::Set(_));
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
            let term = if is_set {
                self.membership_term(axiom.node, from)
            } else {
                self.pair_term(axiom.node, from, to)
            };
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

    fn encode_acyclic(&mut self, axiom: &Axiom, unless: &[Bit]) {
        let Some(may) = self.bounds.may(axiom.node).as_relation().cloned() else { return };
        for component in cyclic_components(&may, self.bounds.n) {
            let before = self.new_order(&component);
            for &from in &component {
                for &to in &component {
                    if !may.contains(from, to) || self.solver.is_exhausted() {
                        continue;
                    }
                    let edge = self.pair_term(axiom.node, from, to);
                    let ordered = self.order_bit(&before, from, to);
                    let executes = [self.program.executes[from], self.program.executes[to]];
                    let mut clause = unless.to_vec();
                    clause.extend([!edge, !executes[0], !executes[1], ordered]);
                    self.solver.require_any(&clause);
                }
            }
        }
    }

    /// Returns the bit of a pair of a relation, which has a meaning only if both events execute.
    fn pair_term(&mut self, id: NodeId, from: usize, to: usize) -> Bit {
        let within = |value: &CatValue<M>| value.as_relation().is_some_and(|pairs| pairs.contains(from, to));
        if within(self.bounds.must(id)) {
            return Bit::TRUE;
        }
        if !within(self.bounds.may(id)) {
            return Bit::FALSE;
        }
        let key = (id.0, from as u16, to as u16);
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
            PlanNode::BaseRelation(_) => self.co_bit(from, to),
            PlanNode::Union(a, b) => {
                let terms = [self.pair_term(a, from, to), self.pair_term(b, from, to)];
                self.any_of(lower_only, &terms)
            }
            PlanNode::Intersection(a, b) => {
                let terms = [self.pair_term(a, from, to), self.pair_term(b, from, to)];
                self.solver.circuit.all(&terms)
            }
            PlanNode::Difference(a, b) => {
                let (one, other) = (self.pair_term(a, from, to), self.pair_term(b, from, to));
                self.solver.circuit.and(one, !other)
            }
            PlanNode::Complement(a) => !self.pair_term(a, from, to),
            PlanNode::Inverse(a) => self.pair_term(a, to, from),
            PlanNode::Optional(a) => self.pair_term(a, from, to),
            PlanNode::IdentityOn(a) => self.membership_term(a, from),
            PlanNode::Product(a, b) => {
                let (one, other) = (self.membership_term(a, from), self.membership_term(b, to));
                self.solver.circuit.and(one, other)
            }
            PlanNode::RestrictRows(set, pairs) => {
                let (one, other) = (self.membership_term(set, from), self.pair_term(pairs, from, to));
                self.solver.circuit.and(one, other)
            }
            PlanNode::RestrictColumns(pairs, set) => {
                let (one, other) = (self.membership_term(set, to), self.pair_term(pairs, from, to));
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
            PlanNode::Plus(_) | PlanNode::Star(_) => {
                let whole = self.solver.circuit.input();
                self.open_closure_pairs.push((id, from, to, whole));
                whole
            }
            // Static nodes are never open, and models with fixpoints are not encoded.
            _ => Bit::FALSE,
        };
        self.terms.insert(key, term);
        term
    }

    /// Returns the bit that an event is in a set, which has a meaning only if it executes.
    fn membership_term(&mut self, id: NodeId, event: usize) -> Bit {
        let within = |value: &CatValue<M>| value.as_set().is_some_and(|events| events.contains(event));
        if within(self.bounds.must(id)) {
            return Bit::TRUE;
        }
        if !within(self.bounds.may(id)) {
            return Bit::FALSE;
        }
        let key = (id.0, event as u16, u16::MAX);
        if let Some(known) = self.terms.get(&key) {
            return *known;
        }
        let n = self.bounds.n;
        let term = match self.prepared.plan.node_at(id) {
            PlanNode::SetUnion(a, b) => {
                let (one, other) = (self.membership_term(a, event), self.membership_term(b, event));
                self.solver.circuit.or(one, other)
            }
            PlanNode::SetIntersection(a, b) => {
                let (one, other) = (self.membership_term(a, event), self.membership_term(b, event));
                self.solver.circuit.and(one, other)
            }
            PlanNode::SetDifference(a, b) => {
                let (one, other) = (self.membership_term(a, event), self.membership_term(b, event));
                self.solver.circuit.and(one, !other)
            }
            PlanNode::SetComplement(a) => !self.membership_term(a, event),
            PlanNode::Domain(a) | PlanNode::Range(a) => {
                let is_domain = matches!(self.prepared.plan.node_at(id), PlanNode::Domain(_));
                let mut terms = Vec::new();
                for other in 0..n {
                    let (from, to) = if is_domain { (event, other) } else { (other, event) };
                    let pair = self.pair_term(a, from, to);
                    let executes = self.executes_too(other, event, event);
                    terms.push(self.solver.circuit.and(pair, executes));
                }
                self.solver.circuit.any(&terms)
            }
            _ => Bit::FALSE,
        };
        self.terms.insert(key, term);
        term
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

    /// Encodes a closure pair from below: each step of the relation, followed by the closure.
    fn encode_closure_pair(&mut self, id: NodeId, from: usize, to: usize, whole: Bit) {
        let (PlanNode::Plus(relation) | PlanNode::Star(relation)) = self.prepared.plan.node_at(id) else {
            return;
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

    fn reads_from_bit(&self, write: usize, read: usize) -> Bit {
        let sources = self.sources.get(&read).map_or(&[][..], Vec::as_slice);
        sources.iter().find(|(source, _)| *source == write).map_or(Bit::FALSE, |(_, bit)| *bit)
    }
}

/// An order that excludes cycles of events.
enum CycleOrder {
    /// A bit for each pair of events.
    Total(QuickMap<(usize, usize), Bit>),
    /// A number for each event.
    Positions(QuickMap<usize, BitVector>),
}

fn ordered_bit(before: &QuickMap<(usize, usize), Bit>, from: usize, to: usize) -> Bit {
    match from < to {
        true => before.get(&(from, to)).copied(),
        false => before.get(&(to, from)).map(|bit| !*bit),
    }
    .unwrap_or(Bit::FALSE)
}

/// Returns the pairs of events whose first executes only if the second does.
fn implied_events<M: Matrix, S: SatSolver>(program: &GuardedProgram, solver: &CircuitSolver<S>) -> M {
    let n = program.skeleton.len();
    let mut implied = M::empty(n);
    for from in 0..n {
        // The conjuncts of a guard, of these again.
        let mut known = vec![program.executes[from], Bit::TRUE];
        let mut next = 0;
        while let Some(bit) = known.get(next).copied() {
            next += 1;
            for conjunct in solver.circuit.conjuncts(bit) {
                if !known.contains(&conjunct) {
                    known.push(conjunct);
                }
            }
        }
        (0..n).filter(|to| known.contains(&program.executes[*to])).for_each(|to| implied.insert(from, to));
    }
    implied
}
