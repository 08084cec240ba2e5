//! SAT encoding of a model's axioms over one event structure, for a CDCL solver (`batsat`).
//!
//! A pair of a node that is open between its bounds is a variable, defined by the node's operands. Reads-from
//! is an exactly-one choice per read, modification order a total order per storage. An acyclic relation is
//! contained in a total order. The values that reads return are encoded too.
//!
//! A node whose lower bound suffices for the axioms is encoded from below: its literal is implied by its
//! operands, but does not imply them. The solver may set it without need, which can only violate an axiom.
//!
//! A closure is encoded from below: it contains at least the implied pairs. This is exact only if every axiom
//! is also satisfied by the smaller closure. [`is_encodable`] rejects other models.

mod coherence;
mod goal_query;
mod rmw_chains;
mod values;

use std::rc::Rc;

use litmus::{LocationId, Value as Number};

pub(crate) use self::goal_query::{GoalEvidence, grounded_flags};
pub(crate) use self::values::{EventDomains, dependency_cycles};
use crate::cat::{Axiom, AxiomKind, CatValue, NodeId, PlanNode};
use crate::interval::{RequestedBounds, nodes_to_evaluate};
use crate::matrix::{Bits, Matrix};
use crate::outcome_collector::OutcomeCollector;
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::search::StaticBounds;
use crate::skeleton::{Skeleton, Tags};
use crate::symmetry::SymmetryBreaking;
use solver::{Literal, SatSolver};

/// Limit of events of one cycle: its total order has a clause for each triple of events.
const MAX_CYCLE_EVENTS: usize = 256;

/// The SAT encoding of one event structure.
pub(crate) struct SatEncoding<'a, M: Matrix, S> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    static_bounds: &'a StaticBounds<M>,
    domains: Rc<EventDomains>,
    solver: S,
    /// For each node, true if the axioms need its lower bound alone.
    lower_bound_only: Vec<bool>,
    encoded_terms: QuickMap<(u32, u16, u16), BooleanTerm>,
    /// Closure pairs that are not encoded yet.
    open_closure_pairs: Vec<(NodeId, usize, usize, Literal)>,
    /// For each read, the writes that it may read from.
    sources: QuickMap<usize, Vec<(usize, Literal)>>,
    /// For each pair of writes to a storage, the lower event first: the literal that the first precedes the
    /// second.
    orders: QuickMap<(usize, usize), Literal>,
    /// The flag axioms that can be raised, each with the assumption that raises it.
    flags: Vec<(usize, Literal)>,
    /// The literal of each value that a read may return.
    returned: QuickMap<usize, Vec<(Number, BooleanTerm)>>,
    /// Reads that are only constrained to return one of their values so far.
    undefined_reads: Vec<usize>,
    /// The literal of each value that a write may store.
    stored: QuickMap<usize, Vec<(Number, BooleanTerm)>>,
    /// The literal of each final value of a storage.
    finals: QuickMap<LocationId, Vec<(Number, BooleanTerm)>>,
    /// The assumption that no value depends on itself, if any may.
    grounded: Option<Literal>,
    /// The assumption that restricts symmetric executions to one representative.
    symmetry_assumption: Option<Literal>,
}

/// A constant or a literal: the truth value of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BooleanTerm {
    False,
    True,
    Literal(Literal),
}

impl std::ops::Not for BooleanTerm {
    type Output = BooleanTerm;

    fn not(self) -> BooleanTerm {
        match self {
            BooleanTerm::False => BooleanTerm::True,
            BooleanTerm::True => BooleanTerm::False,
            BooleanTerm::Literal(literal) => BooleanTerm::Literal(!literal),
        }
    }
}

/// Returns the bounds of the open nodes that the axioms need.
fn requested_bounds<M: Matrix>(
    prepared: &PreparedPlan,
    static_bounds: &StaticBounds<M>,
) -> Vec<RequestedBounds> {
    let roots = prepared.plan.axioms.iter().map(|axiom| RequestedBounds {
        node: axiom.node,
        must: !axiom.negated,
        may: axiom.negated,
    });
    nodes_to_evaluate(prepared, roots, |id| static_bounds.bounds.must(id) != static_bounds.bounds.may(id))
}

/// Returns true if the clauses are equivalent to the axioms: closures and fixpoints occur only where a lower
/// bound suffices.
pub(crate) fn is_encodable<M: Matrix>(prepared: &PreparedPlan, static_bounds: &StaticBounds<M>) -> bool {
    let plan = &prepared.plan;
    let (bounds, open) =
        (&static_bounds.bounds, |id| static_bounds.bounds.must(id) != static_bounds.bounds.may(id));
    plan.size_constraints.is_empty()
        // Acyclicity is encoded positively, by a total order. Its negation needs a cycle, which has
        // no such certificate, so the relation must be static.
        && plan.axioms.iter().all(|axiom| match (axiom.kind, axiom.negated) {
            (AxiomKind::Acyclic, true) => !open(axiom.node),
            (AxiomKind::Acyclic, false) => bounds.may(axiom.node).as_relation().is_some_and(|may| {
                cyclic_components(may, bounds.n).iter().all(|component| component.len() <= MAX_CYCLE_EVENTS)
            }),
            _ => true,
        })
        && requested_bounds(prepared, static_bounds).iter().all(|wanted| match plan.node_at(wanted.node) {
            // `encode_closure_pair` encodes only "path implies literal": the solver may set the literal of an
            // unreachable pair. This cannot satisfy an axiom that uses the lower bound, but one
            // that uses the upper bound.
            PlanNode::Plus(_) | PlanNode::Star(_) => !wanted.may,
            PlanNode::Immediate(_) | PlanNode::Recursive { .. } => false,
            _ => true,
        })
}

impl<'a, M: Matrix, S: SatSolver> SatEncoding<'a, M, S> {
    /// Encodes the axioms. The caller must check [`is_encodable`] first.
    pub(crate) fn new(
        collector: &OutcomeCollector<'a>,
        prepared: &'a PreparedPlan,
        static_bounds: &'a StaticBounds<M>,
        domains: Rc<EventDomains>,
        solver: S,
    ) -> SatEncoding<'a, M, S> {
        let mut lower_bound_only = vec![false; prepared.plan.nodes.len()];
        for wanted in requested_bounds(prepared, static_bounds) {
            lower_bound_only[wanted.node.to_index()] = wanted.must && !wanted.may;
        }
        let mut encoding = SatEncoding {
            skeleton: collector.skeleton,
            prepared,
            static_bounds,
            domains: domains.clone(),
            solver,
            lower_bound_only,
            encoded_terms: QuickMap::default(),
            open_closure_pairs: Vec::new(),
            sources: QuickMap::default(),
            orders: QuickMap::default(),
            flags: Vec::new(),
            returned: QuickMap::default(),
            undefined_reads: Vec::new(),
            stored: QuickMap::default(),
            finals: QuickMap::default(),
            grounded: None,
            symmetry_assumption: None,
        };
        encoding.encode_symmetry_breaking(&collector.symmetry_breaking);
        encoding.encode_path_constraints();
        encoding.encode_coherence(collector.ordered_storages);
        encoding.encode_rmw_chains();
        if domains.is_circular {
            let grounded = encoding.solver.new_variable();
            encoding.encode_groundedness(grounded);
            encoding.grounded = Some(grounded);
        }
        encoding.define_values();
        // The clauses so far are few, and most combinations of paths contradict them.
        if encoding.solver.solve(&[]) == Some(false) {
            return encoding;
        }
        // A flag must not exclude executions that do not raise it, so its clauses hold only under
        // an assumption that a query may set.
        for (index, axiom) in prepared.plan.axioms.iter().enumerate() {
            if axiom.is_flag {
                let raised = encoding.solver.new_variable();
                if encoding.encode_axiom(axiom, Some(raised)) {
                    encoding.flags.push((index, raised));
                }
            } else {
                encoding.encode_axiom(axiom, None);
            }
        }
        // Encoding one closure pair may request further pairs of the same closure: a worklist, so
        // that the depth of recursion does not grow with the number of events.
        while !encoding.solver.is_exhausted()
            && let Some((node, from, to, literal)) = encoding.open_closure_pairs.pop()
        {
            encoding.encode_closure_pair(node, from, to, literal);
        }
        encoding
    }

    /// Orders symmetric threads, assuming `symmetry_assumption`: only one execution of each orbit remains.
    fn encode_symmetry_breaking(&mut self, symmetry_breaking: &SymmetryBreaking) {
        if symmetry_breaking.ordered_writes.is_empty() {
            return;
        }
        let first = self.solver.new_variable();
        for (earlier, later) in &symmetry_breaking.ordered_writes {
            let ordered = self.order_term(*earlier, *later);
            self.add_implication(&[BooleanTerm::Literal(first)], ordered);
        }
        self.symmetry_assumption = Some(first);
    }

    /// Encodes an axiom, conditional on `when`; returns false if it cannot hold.
    fn encode_axiom(&mut self, axiom: &Axiom, when: Option<Literal>) -> bool {
        let unless = when.map(|literal| !literal);
        let n = self.static_bounds.bounds.n;
        // Only pairs that may hold can break the axiom.
        let mut pairs: Vec<(usize, usize)> = match self.static_bounds.bounds.may(axiom.node) {
            CatValue::Relation(may) => may.pairs().collect(),
            CatValue::Set(may) => {
                (0..n).filter(|event| may.contains(*event)).map(|event| (event, event)).collect()
            }
        };
        if axiom.kind == AxiomKind::Irreflexive {
            pairs.retain(|(from, to)| from == to);
        }
        let is_set = matches!(self.static_bounds.bounds.may(axiom.node), CatValue::Set(_));
        if axiom.kind == AxiomKind::Acyclic {
            return self.encode_acyclic(axiom, unless);
        }
        let mut some: Vec<Literal> = unless.into_iter().collect();
        for (from, to) in pairs {
            if self.solver.is_exhausted() {
                return true;
            }
            let term = if is_set {
                self.membership_term(axiom.node, from)
            } else {
                self.pair_term(axiom.node, from, to)
            };
            match (axiom.negated, term) {
                (_, BooleanTerm::False) => {}
                (false, BooleanTerm::True) => {
                    // A certain pair violates the axiom: without `unless` this is the empty clause,
                    // and the encoding is unsatisfiable.
                    self.solver.add_clause(unless.as_slice());
                    return false;
                }
                (false, BooleanTerm::Literal(literal)) => {
                    let clause: Vec<Literal> = unless.into_iter().chain([!literal]).collect();
                    self.solver.add_clause(&clause);
                }
                (true, BooleanTerm::True) => return true,
                (true, BooleanTerm::Literal(literal)) => some.push(literal),
            }
        }
        if axiom.negated {
            self.solver.add_clause(&some);
            return some.len() > unless.iter().len();
        }
        true
    }

    fn encode_acyclic(&mut self, axiom: &Axiom, unless: Option<Literal>) -> bool {
        let Some(may) = self.static_bounds.bounds.may(axiom.node).as_relation().cloned() else { return true };
        if axiom.negated {
            // The relation is static; see `is_encodable`.
            return !may.is_acyclic();
        }
        // A cycle lies within one strongly connected component of the upper bound, so pairs between
        // components need no order.
        for component in cyclic_components(&may, self.static_bounds.bounds.n) {
            if self.solver.is_exhausted() {
                return true;
            }
            let before = self.new_total_order(&component);
            for &from in &component {
                for &to in &component {
                    if !may.contains(from, to) {
                        continue;
                    }
                    let edge = self.pair_term(axiom.node, from, to);
                    // A self-loop has no order that could permit it: its clause forbids the edge
                    // alone.
                    let ordered = (from != to).then(|| order_literal(&before, from, to)).flatten();
                    let mut clause: Vec<Literal> = unless.into_iter().chain(ordered).collect();
                    match edge {
                        BooleanTerm::False => continue,
                        BooleanTerm::True => {}
                        BooleanTerm::Literal(literal) => clause.push(!literal),
                    }
                    self.solver.add_clause(&clause);
                }
            }
        }
        true
    }

    /// Returns the literals of a total order of these events, in ascending order.
    fn new_total_order(&mut self, events: &[usize]) -> QuickMap<(usize, usize), Literal> {
        let mut before = QuickMap::default();
        for (index, &first) in events.iter().enumerate() {
            for &second in &events[index + 1..] {
                before.insert((first, second), self.solver.new_variable());
            }
        }
        for (i, &a) in events.iter().enumerate() {
            for (j, &b) in events.iter().enumerate().skip(i + 1) {
                for &c in &events[j + 1..] {
                    if let (Some(&ab), Some(&bc), Some(&ac)) =
                        (before.get(&(a, b)), before.get(&(b, c)), before.get(&(a, c)))
                    {
                        // One literal per pair makes the order total and antisymmetric. A total
                        // relation without a cycle of three events is transitive; these two clauses
                        // exclude the two such cycles.
                        self.solver.add_clause(&[!ab, !bc, ac]);
                        self.solver.add_clause(&[ab, bc, !ac]);
                    }
                }
            }
        }
        before
    }

    /// Returns the truth value of a pair in a relation.
    fn pair_term(&mut self, id: NodeId, from: usize, to: usize) -> BooleanTerm {
        let static_bounds = self.static_bounds;
        let within = |value: &CatValue<M>| value.as_relation().is_some_and(|pairs| pairs.contains(from, to));
        // A pair that the static bounds decide needs no variable.
        if within(static_bounds.bounds.must(id)) {
            return BooleanTerm::True;
        }
        if !within(static_bounds.bounds.may(id)) {
            return BooleanTerm::False;
        }
        let key = (id.0, from as u16, to as u16);
        if let Some(cached) = self.encoded_terms.get(&key) {
            return *cached;
        }
        let lower_only = self.lower_bound_only[id.to_index()];
        let term = match self.prepared.plan.node_at(id) {
            PlanNode::BaseRelation(_) if self.prepared.rf.contains(&id) => self.reads_from_term(from, to),
            PlanNode::BaseRelation(_) => self.order_term(from, to),
            PlanNode::Union(a, b) => {
                let both = [self.pair_term(a, from, to), self.pair_term(b, from, to)];
                self.encode_any(lower_only, &both)
            }
            PlanNode::Intersection(a, b) => {
                self.encode_and(lower_only, |me| me.pair_term(a, from, to), |me| me.pair_term(b, from, to))
            }
            PlanNode::Difference(a, b) => {
                self.encode_and(lower_only, |me| me.pair_term(a, from, to), |me| !me.pair_term(b, from, to))
            }
            PlanNode::Complement(a) => !self.pair_term(a, from, to),
            PlanNode::Inverse(a) => self.pair_term(a, to, from),
            PlanNode::Optional(a) => self.pair_term(a, from, to),
            PlanNode::IdentityOn(a) => self.membership_term(a, from),
            PlanNode::Product(a, b) => {
                self.encode_and(lower_only, |me| me.membership_term(a, from), |me| me.membership_term(b, to))
            }
            PlanNode::RestrictRows(set, pairs) => self.encode_and(
                lower_only,
                |me| me.membership_term(set, from),
                |me| me.pair_term(pairs, from, to),
            ),
            PlanNode::RestrictColumns(pairs, set) => self.encode_and(
                lower_only,
                |me| me.membership_term(set, to),
                |me| me.pair_term(pairs, from, to),
            ),
            PlanNode::Sequence(a, b) if lower_only => self.encode_sequence_from_below(a, b, from, to),
            PlanNode::Sequence(a, b) => {
                let mut terms = Vec::new();
                // The first half is possible, so `encode_and` evaluates the second half
                // first: it is more often impossible.
                for between in self.possible_successors(a, from) {
                    let term = self.encode_and(
                        false,
                        |me| me.pair_term(b, between, to),
                        |me| me.pair_term(a, from, between),
                    );
                    terms.push(term);
                    if term == BooleanTerm::True {
                        break;
                    }
                }
                self.encode_any(false, &terms)
            }
            PlanNode::Plus(_) | PlanNode::Star(_) => {
                // The literal is in `encoded_terms` before its clauses exist, so that a cyclic closure
                // finds it instead of recursing.
                let literal = self.solver.new_variable();
                self.open_closure_pairs.push((id, from, to, literal));
                BooleanTerm::Literal(literal)
            }
            // Static nodes are never open, and models with fixpoints are not encoded.
            _ => BooleanTerm::False,
        };
        self.encoded_terms.insert(key, term);
        term
    }

    /// Returns the truth value of an event's membership in a set.
    fn membership_term(&mut self, id: NodeId, event: usize) -> BooleanTerm {
        let static_bounds = self.static_bounds;
        let within = |value: &CatValue<M>| value.as_set().is_some_and(|events| events.contains(event));
        if within(static_bounds.bounds.must(id)) {
            return BooleanTerm::True;
        }
        if !within(static_bounds.bounds.may(id)) {
            return BooleanTerm::False;
        }
        // Sets share the map with relations. No event has the number `u16::MAX` (`MAX_EVENTS`), so
        // the keys differ.
        let key = (id.0, event as u16, u16::MAX);
        if let Some(cached) = self.encoded_terms.get(&key) {
            return *cached;
        }
        let n = self.static_bounds.bounds.n;
        let term = match self.prepared.plan.node_at(id) {
            PlanNode::SetUnion(a, b) => {
                let both = [self.membership_term(a, event), self.membership_term(b, event)];
                self.encode_any(false, &both)
            }
            PlanNode::SetIntersection(a, b) => {
                self.encode_and(false, |me| me.membership_term(a, event), |me| me.membership_term(b, event))
            }
            PlanNode::SetDifference(a, b) => {
                self.encode_and(false, |me| me.membership_term(a, event), |me| !me.membership_term(b, event))
            }
            PlanNode::SetComplement(a) => !self.membership_term(a, event),
            PlanNode::Domain(a) => {
                let terms: Vec<BooleanTerm> = (0..n).map(|to| self.pair_term(a, event, to)).collect();
                self.encode_any(false, &terms)
            }
            PlanNode::Range(a) => {
                let terms: Vec<BooleanTerm> = (0..n).map(|from| self.pair_term(a, from, event)).collect();
                self.encode_any(false, &terms)
            }
            // Static sets are never open, as in `pair_term`.
            _ => BooleanTerm::False,
        };
        self.encoded_terms.insert(key, term);
        term
    }

    /// Encodes a pair of a sequence from below: two steps imply it.
    fn encode_sequence_from_below(
        &mut self,
        first: NodeId,
        second: NodeId,
        from: usize,
        to: usize,
    ) -> BooleanTerm {
        let mut premises: Vec<(Literal, Literal)> = Vec::new();
        for between in self.possible_successors(first, from) {
            // The first half is possible; the second is more often impossible.
            let end = self.pair_term(second, between, to);
            if end == BooleanTerm::False {
                continue;
            }
            match (self.pair_term(first, from, between), end) {
                (BooleanTerm::False, _) | (_, BooleanTerm::False) => {}
                (BooleanTerm::True, BooleanTerm::True) => return BooleanTerm::True,
                (BooleanTerm::Literal(one), BooleanTerm::True)
                | (BooleanTerm::True, BooleanTerm::Literal(one)) => {
                    premises.push((one, one));
                }
                (BooleanTerm::Literal(one), BooleanTerm::Literal(other)) => {
                    premises.push((one.min(other), one.max(other)));
                }
            }
        }
        premises.sort_unstable();
        premises.dedup();
        match premises.as_slice() {
            [] => BooleanTerm::False,
            [(one, other)] if one == other => BooleanTerm::Literal(*one),
            premises => {
                let whole = self.solver.new_defined_variable();
                for (one, other) in premises {
                    if one == other {
                        self.solver.add_clause(&[!*one, whole]);
                    } else {
                        self.solver.add_clause(&[!*one, !*other, whole]);
                    }
                }
                BooleanTerm::Literal(whole)
            }
        }
    }

    /// Encodes a closure pair from below: each step of the relation, followed by the closure.
    fn encode_closure_pair(&mut self, id: NodeId, from: usize, to: usize, whole: Literal) {
        let (PlanNode::Plus(relation) | PlanNode::Star(relation)) = self.prepared.plan.node_at(id) else {
            return;
        };
        for between in self.possible_successors(relation, from) {
            let rest = if between == to { BooleanTerm::True } else { self.pair_term(id, between, to) };
            let step = if rest == BooleanTerm::False {
                BooleanTerm::False
            } else {
                self.pair_term(relation, from, between)
            };
            match (step, rest) {
                (BooleanTerm::False, _) | (_, BooleanTerm::False) => {}
                (BooleanTerm::True, BooleanTerm::True) => self.solver.add_clause(&[whole]),
                (BooleanTerm::Literal(one), BooleanTerm::True)
                | (BooleanTerm::True, BooleanTerm::Literal(one)) => self.solver.add_clause(&[!one, whole]),
                (BooleanTerm::Literal(one), BooleanTerm::Literal(other)) => {
                    self.solver.add_clause(&[!one, !other, whole])
                }
            }
        }
    }

    /// Returns the possible successors of an event in a relation.
    fn possible_successors(&self, id: NodeId, from: usize) -> Vec<usize> {
        let Some(may) = self.static_bounds.bounds.may(id).as_relation() else { return Vec::new() };
        let row = may.row(from);
        (0..self.static_bounds.bounds.n).filter(|to| row.contains(*to)).collect()
    }

    /// Returns the term of a reads-from edge; each read has exactly one source.
    fn reads_from_term(&mut self, write: usize, read: usize) -> BooleanTerm {
        if !self.sources.contains_key(&read) {
            let candidates = self.static_bounds.reads.iter().find(|choice| choice.read == read);
            let candidates = candidates.map_or(&[][..], |choice| &choice.candidates);
            let sources: Vec<(usize, Literal)> =
                candidates.iter().map(|write| (*write, self.solver.new_variable())).collect();
            let all: Vec<Literal> = sources.iter().map(|(_, literal)| *literal).collect();
            self.add_exactly_one(&all);
            self.sources.insert(read, sources);
        }
        let sources = self.sources.get(&read).map_or(&[][..], Vec::as_slice);
        let source = sources.iter().find(|(candidate, _)| *candidate == write);
        source.map_or(BooleanTerm::False, |(_, literal)| BooleanTerm::Literal(*literal))
    }

    /// Returns the literal that orders two writes of a storage.
    fn order_term(&mut self, from: usize, to: usize) -> BooleanTerm {
        if !self.orders.contains_key(&(from.min(to), from.max(to))) {
            let writes = self.thread_writes(self.skeleton.events[from].storage);
            let order = self.new_total_order(&writes);
            self.orders.extend(order);
        }
        order_literal(&self.orders, from, to).map_or(BooleanTerm::False, BooleanTerm::Literal)
    }

    fn thread_writes(&self, storage: Option<LocationId>) -> Vec<usize> {
        let is_thread_write = |event: &usize| {
            let event = &self.skeleton.events[*event];
            event.storage == storage && event.tags.has(Tags::W) && !event.tags.has(Tags::IW)
        };
        (0..self.skeleton.len()).filter(is_thread_write).collect()
    }

    /// Returns the initial write of a storage that no thread writes.
    fn initial_write(&self, storage: LocationId) -> Option<usize> {
        let is_initial = |event: &usize| {
            let event = &self.skeleton.events[*event];
            event.storage == Some(storage) && event.tags.has(Tags::IW)
        };
        (0..self.skeleton.len()).rfind(is_initial)
    }

    /// Returns the conjunction of two terms; evaluates the second only if the first can hold.
    ///
    /// With `lower`, the term is implied by the conjunction, but does not imply it.
    fn encode_and(
        &mut self,
        lower: bool,
        first: impl FnOnce(&mut Self) -> BooleanTerm,
        second: impl FnOnce(&mut Self) -> BooleanTerm,
    ) -> BooleanTerm {
        let first = first(self);
        if first == BooleanTerm::False {
            return BooleanTerm::False;
        }
        let second = second(self);
        self.encode_conjunction(lower, first, second)
    }

    /// Returns a term for the conjunction of two terms, as [`encode_and`](Self::encode_and).
    fn encode_conjunction(&mut self, lower: bool, first: BooleanTerm, second: BooleanTerm) -> BooleanTerm {
        match (first, second) {
            (BooleanTerm::True, other) | (other, BooleanTerm::True) => other,
            (BooleanTerm::Literal(a), BooleanTerm::Literal(b)) if a == b => first,
            (BooleanTerm::Literal(a), BooleanTerm::Literal(b)) => {
                // Tseitin encoding: a variable that is equivalent to the conjunction.
                let both = self.solver.new_defined_variable();
                if !lower {
                    self.solver.add_clause(&[!both, a]);
                    self.solver.add_clause(&[!both, b]);
                }
                self.solver.add_clause(&[!a, !b, both]);
                BooleanTerm::Literal(both)
            }
            _ => BooleanTerm::False,
        }
    }

    fn encode_all(&mut self, terms: &[BooleanTerm]) -> BooleanTerm {
        terms.iter().fold(BooleanTerm::True, |all, term| self.encode_and(false, |_| all, |_| *term))
    }

    /// Returns the disjunction of terms. With `lower`, the result is implied by it, but does not imply it.
    fn encode_any(&mut self, lower: bool, terms: &[BooleanTerm]) -> BooleanTerm {
        let mut open: Vec<Literal> = Vec::new();
        for term in terms {
            match term {
                BooleanTerm::True => return BooleanTerm::True,
                BooleanTerm::False => {}
                BooleanTerm::Literal(literal) => open.push(*literal),
            }
        }
        // Several paths between two events may share their one open edge, so terms repeat.
        open.sort_unstable();
        open.dedup();
        match open.as_slice() {
            [] => BooleanTerm::False,
            [one] => BooleanTerm::Literal(*one),
            _ => {
                let any = self.solver.new_defined_variable();
                open.iter().for_each(|literal| self.solver.add_clause(&[!*literal, any]));
                if !lower {
                    open.push(!any);
                    self.solver.add_clause(&open);
                }
                BooleanTerm::Literal(any)
            }
        }
    }
}

fn order_literal(before: &QuickMap<(usize, usize), Literal>, from: usize, to: usize) -> Option<Literal> {
    match from < to {
        true => before.get(&(from, to)).copied(),
        false => before.get(&(to, from)).map(|literal| !*literal),
    }
}

/// Returns the strongly connected components that contain cycles, with events in ascending order.
pub(crate) fn cyclic_components<M: Matrix>(relation: &M, n: usize) -> Vec<Vec<usize>> {
    // Components from the transitive closure: mutual reachability. Events without a cycle through
    // them need no component.
    let reaches = relation.plus();
    let mut components: Vec<Vec<usize>> = Vec::new();
    for event in (0..n).filter(|event| reaches.contains(*event, *event)) {
        let known = components.iter_mut().find(|component| {
            component
                .first()
                .is_some_and(|first| reaches.contains(*first, event) && reaches.contains(event, *first))
        });
        match known {
            Some(component) => component.push(event),
            None => components.push(vec![event]),
        }
    }
    components
}
