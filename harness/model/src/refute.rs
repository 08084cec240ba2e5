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
//! is also satisfied by the smaller closure. [`is_refutable`] rejects other models.

mod coherence;
mod lines;
mod question;
mod values;

use std::rc::Rc;

use litmus::{LocationId, Value as Number};

pub(crate) use self::question::{GoalEvidence, known};
pub(crate) use self::values::Domains;
use crate::cat::{Axiom, AxiomKind, CatValue, Node, NodeId};
use crate::combine::OutcomeCollector;
use crate::interval::{NodeQuery, wanted_for};
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::sat::{Literal, Solver};
use crate::search::StaticBounds;
use crate::skeleton::{Skeleton, Tags};
use crate::symmetry::SymmetryBreaking;

/// Limit of events of one cycle: its total order has a clause for each triple of events.
const LARGEST_CYCLE: usize = 256;

/// The SAT encoding of one event structure.
pub(crate) struct Refuter<'a, M: Matrix, S> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    ground: &'a StaticBounds<M>,
    domains: Rc<Domains>,
    solver: S,
    /// For each node, true if the axioms need its lower bound alone.
    lower_bound_only: Vec<bool>,
    known: QuickMap<(u32, u16, u16), RelationTerm>,
    /// Closure pairs that are not encoded yet.
    closures: Vec<(NodeId, usize, usize, Literal)>,
    /// For each read, the writes that it may read from.
    sources: QuickMap<usize, Vec<(usize, Literal)>>,
    /// For each pair of writes to a storage, the lower event first: the literal that the first precedes the
    /// second.
    orders: QuickMap<(usize, usize), Literal>,
    /// The flag axioms that can be raised, each with the assumption that raises it.
    flags: Vec<(usize, Literal)>,
    /// The literal of each value that a read may return.
    returned: QuickMap<usize, Vec<(Number, RelationTerm)>>,
    /// Reads that are only constrained to return one of their values so far.
    undefined: Vec<usize>,
    /// The literal of each value that a write may store.
    stored: QuickMap<usize, Vec<(Number, RelationTerm)>>,
    /// The literal of each final value of a storage.
    finals: QuickMap<LocationId, Vec<(Number, RelationTerm)>>,
    /// The assumption that no value depends on itself, if any may.
    grounded: Option<Literal>,
    /// The assumption that restricts symmetric executions to one representative.
    first_alike: Option<Literal>,
}

/// A constant or a literal: the truth value of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelationTerm {
    No,
    Yes,
    If(Literal),
}

impl std::ops::Not for RelationTerm {
    type Output = RelationTerm;

    fn not(self) -> RelationTerm {
        match self {
            RelationTerm::No => RelationTerm::Yes,
            RelationTerm::Yes => RelationTerm::No,
            RelationTerm::If(literal) => RelationTerm::If(!literal),
        }
    }
}

/// Returns the bounds of the open nodes that the axioms need.
fn wanted_bounds<M: Matrix>(prepared: &PreparedPlan, ground: &StaticBounds<M>) -> Vec<NodeQuery> {
    let asked = prepared.plan.axioms.iter().map(|axiom| NodeQuery {
        node: axiom.node,
        must: !axiom.negated,
        may: axiom.negated,
    });
    wanted_for(prepared, asked, |id| ground.bounds.must(id) != ground.bounds.may(id))
}

/// Returns true if the clauses are equivalent to the axioms: closures and fixpoints occur only where a lower
/// bound suffices.
pub(crate) fn is_refutable<M: Matrix>(prepared: &PreparedPlan, ground: &StaticBounds<M>) -> bool {
    let plan = &prepared.plan;
    let (bounds, open) = (&ground.bounds, |id| ground.bounds.must(id) != ground.bounds.may(id));
    plan.sizes.is_empty()
        // Acyclicity is encoded positively, by a total order. Its negation needs a cycle, which has
        // no such certificate, so the relation must be static.
        && plan.axioms.iter().all(|axiom| match (axiom.kind, axiom.negated) {
            (AxiomKind::Acyclic, true) => !open(axiom.node),
            (AxiomKind::Acyclic, false) => bounds.may(axiom.node).as_relation().is_some_and(|may| {
                components(may, bounds.n).iter().all(|component| component.len() <= LARGEST_CYCLE)
            }),
            _ => true,
        })
        && wanted_bounds(prepared, ground).iter().all(|wanted| match plan.node_at(wanted.node) {
            // `close` encodes only "path implies literal": the solver may set the literal of an
            // unreachable pair. This cannot satisfy an axiom that uses the lower bound, but one
            // that uses the upper bound.
            Node::Plus(_) | Node::Star(_) => !wanted.may,
            Node::Immediate(_) | Node::Recursive { .. } => false,
            _ => true,
        })
}

impl<'a, M: Matrix, S: Solver> Refuter<'a, M, S> {
    /// Encodes the axioms. The caller must check [`is_refutable`] first.
    pub(crate) fn new(
        combiner: &OutcomeCollector<'a>,
        prepared: &'a PreparedPlan,
        ground: &'a StaticBounds<M>,
        domains: Rc<Domains>,
        solver: S,
    ) -> Refuter<'a, M, S> {
        let mut lower_bound_only = vec![false; prepared.plan.nodes.len()];
        for wanted in wanted_bounds(prepared, ground) {
            lower_bound_only[wanted.node.to_index()] = wanted.must && !wanted.may;
        }
        let mut refuter = Refuter {
            skeleton: combiner.skeleton,
            prepared,
            ground,
            domains: domains.clone(),
            solver,
            lower_bound_only,
            known: QuickMap::default(),
            closures: Vec::new(),
            sources: QuickMap::default(),
            orders: QuickMap::default(),
            flags: Vec::new(),
            returned: QuickMap::default(),
            undefined: Vec::new(),
            stored: QuickMap::default(),
            finals: QuickMap::default(),
            grounded: None,
            first_alike: None,
        };
        refuter.demand_first(&combiner.alike);
        refuter.demand_paths();
        refuter.demand_coherence(combiner.ordered_storages);
        refuter.demand_lines();
        if domains.circular {
            let grounded = refuter.solver.variable();
            refuter.demand_ground(grounded);
            refuter.grounded = Some(grounded);
        }
        refuter.define_values();
        // The clauses so far are few, and most combinations of paths contradict them.
        if refuter.solver.solve(&[]) == Some(false) {
            return refuter;
        }
        // A flag must not exclude executions that do not raise it, so its clauses hold only under
        // an assumption that a query may set.
        for (index, axiom) in prepared.plan.axioms.iter().enumerate() {
            if axiom.flag {
                let raised = refuter.solver.variable();
                if refuter.demand(axiom, Some(raised)) {
                    refuter.flags.push((index, raised));
                }
            } else {
                refuter.demand(axiom, None);
            }
        }
        // Encoding one closure pair may request further pairs of the same closure: a worklist, so
        // that the depth of recursion does not grow with the number of events.
        while !refuter.solver.is_spent()
            && let Some((node, from, to, literal)) = refuter.closures.pop()
        {
            refuter.close(node, from, to, literal);
        }
        refuter
    }

    /// Orders symmetric threads, assuming `first_alike`: only one execution of each orbit remains.
    fn demand_first(&mut self, alike: &SymmetryBreaking) {
        if alike.ordered_writes.is_empty() {
            return;
        }
        let first = self.solver.variable();
        for (earlier, later) in &alike.ordered_writes {
            let ordered = self.ordered(*earlier, *later);
            self.implies(&[RelationTerm::If(first)], ordered);
        }
        self.first_alike = Some(first);
    }

    /// Encodes an axiom, conditional on `when`; returns false if it cannot hold.
    fn demand(&mut self, axiom: &Axiom, when: Option<Literal>) -> bool {
        let unless = when.map(|literal| !literal);
        let n = self.ground.bounds.n;
        // Only pairs that may hold can break the axiom.
        let mut pairs: Vec<(usize, usize)> = match self.ground.bounds.may(axiom.node) {
            CatValue::Relation(may) => may.pairs().collect(),
            CatValue::Set(may) => {
                (0..n).filter(|event| may.contains(*event)).map(|event| (event, event)).collect()
            }
        };
        if axiom.kind == AxiomKind::Irreflexive {
            pairs.retain(|(from, to)| from == to);
        }
        let is_set = matches!(self.ground.bounds.may(axiom.node), CatValue::Set(_));
        if axiom.kind == AxiomKind::Acyclic {
            return self.demand_acyclic(axiom, unless);
        }
        let mut some: Vec<Literal> = unless.into_iter().collect();
        for (from, to) in pairs {
            if self.solver.is_spent() {
                return true;
            }
            let term = if is_set { self.set(axiom.node, from) } else { self.pair(axiom.node, from, to) };
            match (axiom.negated, term) {
                (_, RelationTerm::No) => {}
                (false, RelationTerm::Yes) => {
                    // A certain pair violates the axiom: without `unless` this is the empty clause,
                    // and the encoding is unsatisfiable.
                    self.solver.clause(unless.as_slice());
                    return false;
                }
                (false, RelationTerm::If(literal)) => {
                    let clause: Vec<Literal> = unless.into_iter().chain([!literal]).collect();
                    self.solver.clause(&clause);
                }
                (true, RelationTerm::Yes) => return true,
                (true, RelationTerm::If(literal)) => some.push(literal),
            }
        }
        if axiom.negated {
            self.solver.clause(&some);
            return some.len() > unless.iter().len();
        }
        true
    }

    fn demand_acyclic(&mut self, axiom: &Axiom, unless: Option<Literal>) -> bool {
        let Some(may) = self.ground.bounds.may(axiom.node).as_relation().cloned() else { return true };
        if axiom.negated {
            // Nothing of it is open.
            return !may.is_acyclic();
        }
        // A cycle lies within one strongly connected component of the upper bound, so pairs between
        // components need no order.
        for component in components(&may, self.ground.bounds.n) {
            if self.solver.is_spent() {
                return true;
            }
            let before = self.order(&component);
            for &from in &component {
                for &to in &component {
                    if !may.contains(from, to) {
                        continue;
                    }
                    let edge = self.pair(axiom.node, from, to);
                    // A self-loop has no order that could permit it: its clause forbids the edge
                    // alone.
                    let ordered = (from != to).then(|| precedes(&before, from, to)).flatten();
                    let mut clause: Vec<Literal> = unless.into_iter().chain(ordered).collect();
                    match edge {
                        RelationTerm::No => continue,
                        RelationTerm::Yes => {}
                        RelationTerm::If(literal) => clause.push(!literal),
                    }
                    self.solver.clause(&clause);
                }
            }
        }
        true
    }

    /// Returns the literals of a total order of these events, in ascending order.
    fn order(&mut self, events: &[usize]) -> QuickMap<(usize, usize), Literal> {
        let mut before = QuickMap::default();
        for (index, &first) in events.iter().enumerate() {
            for &second in &events[index + 1..] {
                before.insert((first, second), self.solver.variable());
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
                        self.solver.clause(&[!ab, !bc, ac]);
                        self.solver.clause(&[ab, bc, !ac]);
                    }
                }
            }
        }
        before
    }

    /// Returns the truth value of a pair in a relation.
    fn pair(&mut self, id: NodeId, from: usize, to: usize) -> RelationTerm {
        let ground = self.ground;
        let within = |value: &CatValue<M>| value.as_relation().is_some_and(|pairs| pairs.contains(from, to));
        // A pair that the static bounds decide needs no variable.
        if within(ground.bounds.must(id)) {
            return RelationTerm::Yes;
        }
        if !within(ground.bounds.may(id)) {
            return RelationTerm::No;
        }
        let key = (id.0, from as u16, to as u16);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let lower = self.lower_bound_only[id.to_index()];
        let term = match self.prepared.plan.node_at(id) {
            Node::BaseRelation(_) if self.prepared.rf.contains(&id) => self.reads_from(from, to),
            Node::BaseRelation(_) => self.ordered(from, to),
            Node::Union(a, b) => {
                let both = [self.pair(a, from, to), self.pair(b, from, to)];
                self.any(lower, &both)
            }
            Node::Intersection(a, b) => {
                self.both(lower, |me| me.pair(a, from, to), |me| me.pair(b, from, to))
            }
            Node::Difference(a, b) => self.both(lower, |me| me.pair(a, from, to), |me| !me.pair(b, from, to)),
            Node::Complement(a) => !self.pair(a, from, to),
            Node::Inverse(a) => self.pair(a, to, from),
            Node::Optional(a) => self.pair(a, from, to),
            Node::IdentityOn(a) => self.set(a, from),
            Node::Product(a, b) => self.both(lower, |me| me.set(a, from), |me| me.set(b, to)),
            Node::RestrictRows(set, pairs) => {
                self.both(lower, |me| me.set(set, from), |me| me.pair(pairs, from, to))
            }
            Node::RestrictColumns(pairs, set) => {
                self.both(lower, |me| me.set(set, to), |me| me.pair(pairs, from, to))
            }
            Node::Sequence(a, b) if lower => self.sequence_from_below(a, b, from, to),
            Node::Sequence(a, b) => {
                let mut ways = Vec::new();
                // `steps` has found the first half possible, so `both` looks at the second half
                // first: it is more often impossible.
                for between in self.steps(a, from) {
                    let way = self.both(false, |me| me.pair(b, between, to), |me| me.pair(a, from, between));
                    ways.push(way);
                    if way == RelationTerm::Yes {
                        break;
                    }
                }
                self.any(false, &ways)
            }
            Node::Plus(_) | Node::Star(_) => {
                // The literal is in `known` before its clauses exist, so that a cyclic closure
                // finds it instead of recursing.
                let literal = self.solver.variable();
                self.closures.push((id, from, to, literal));
                RelationTerm::If(literal)
            }
            // Static nodes are never open, and models with fixpoints are not encoded.
            _ => RelationTerm::No,
        };
        self.known.insert(key, term);
        term
    }

    /// Returns the truth value of an event's membership in a set.
    fn set(&mut self, id: NodeId, event: usize) -> RelationTerm {
        let ground = self.ground;
        let within = |value: &CatValue<M>| value.as_set().is_some_and(|events| events.contains(event));
        if within(ground.bounds.must(id)) {
            return RelationTerm::Yes;
        }
        if !within(ground.bounds.may(id)) {
            return RelationTerm::No;
        }
        // Sets share the map with relations. No event has the number `u16::MAX` (`MAX_EVENTS`), so
        // the keys differ.
        let key = (id.0, event as u16, u16::MAX);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let n = self.ground.bounds.n;
        let term = match self.prepared.plan.node_at(id) {
            Node::SetUnion(a, b) => {
                let both = [self.set(a, event), self.set(b, event)];
                self.any(false, &both)
            }
            Node::SetIntersection(a, b) => self.both(false, |me| me.set(a, event), |me| me.set(b, event)),
            Node::SetDifference(a, b) => self.both(false, |me| me.set(a, event), |me| !me.set(b, event)),
            Node::SetComplement(a) => !self.set(a, event),
            Node::Domain(a) => {
                let ways: Vec<RelationTerm> = (0..n).map(|to| self.pair(a, event, to)).collect();
                self.any(false, &ways)
            }
            Node::Range(a) => {
                let ways: Vec<RelationTerm> = (0..n).map(|from| self.pair(a, from, event)).collect();
                self.any(false, &ways)
            }
            // Static sets are never open, as in `pair`.
            _ => RelationTerm::No,
        };
        self.known.insert(key, term);
        term
    }

    /// Encodes a pair of a sequence from below: two steps imply it.
    fn sequence_from_below(&mut self, first: NodeId, second: NodeId, from: usize, to: usize) -> RelationTerm {
        let mut ways: Vec<(Literal, Literal)> = Vec::new();
        for between in self.steps(first, from) {
            // The first half is possible; the second is more often impossible.
            let end = self.pair(second, between, to);
            if end == RelationTerm::No {
                continue;
            }
            match (self.pair(first, from, between), end) {
                (RelationTerm::No, _) | (_, RelationTerm::No) => {}
                (RelationTerm::Yes, RelationTerm::Yes) => return RelationTerm::Yes,
                (RelationTerm::If(one), RelationTerm::Yes) | (RelationTerm::Yes, RelationTerm::If(one)) => {
                    ways.push((one, one));
                }
                (RelationTerm::If(one), RelationTerm::If(other)) => {
                    ways.push((one.min(other), one.max(other)));
                }
            }
        }
        ways.sort_unstable();
        ways.dedup();
        match ways.as_slice() {
            [] => RelationTerm::No,
            [(one, other)] if one == other => RelationTerm::If(*one),
            ways => {
                let whole = self.solver.defined();
                for (one, other) in ways {
                    if one == other {
                        self.solver.clause(&[!*one, whole]);
                    } else {
                        self.solver.clause(&[!*one, !*other, whole]);
                    }
                }
                RelationTerm::If(whole)
            }
        }
    }

    /// Encodes a closure pair from below: each step of the relation, followed by the closure.
    fn close(&mut self, id: NodeId, from: usize, to: usize, whole: Literal) {
        let (Node::Plus(relation) | Node::Star(relation)) = self.prepared.plan.node_at(id) else { return };
        for between in self.steps(relation, from) {
            let rest = if between == to { RelationTerm::Yes } else { self.pair(id, between, to) };
            let way =
                if rest == RelationTerm::No { RelationTerm::No } else { self.pair(relation, from, between) };
            match (way, rest) {
                (RelationTerm::No, _) | (_, RelationTerm::No) => {}
                (RelationTerm::Yes, RelationTerm::Yes) => self.solver.clause(&[whole]),
                (RelationTerm::If(one), RelationTerm::Yes) | (RelationTerm::Yes, RelationTerm::If(one)) => {
                    self.solver.clause(&[!one, whole])
                }
                (RelationTerm::If(one), RelationTerm::If(other)) => {
                    self.solver.clause(&[!one, !other, whole])
                }
            }
        }
    }

    /// Returns the possible successors of an event in a relation.
    fn steps(&self, id: NodeId, from: usize) -> Vec<usize> {
        let Some(may) = self.ground.bounds.may(id).as_relation() else { return Vec::new() };
        let row = may.row(from);
        (0..self.ground.bounds.n).filter(|to| row.contains(*to)).collect()
    }

    /// One write for each read.
    fn reads_from(&mut self, write: usize, read: usize) -> RelationTerm {
        if !self.sources.contains_key(&read) {
            let candidates = self.ground.reads.iter().find(|choice| choice.read == read);
            let candidates = candidates.map_or(&[][..], |choice| &choice.candidates);
            let sources: Vec<(usize, Literal)> =
                candidates.iter().map(|write| (*write, self.solver.variable())).collect();
            let all: Vec<Literal> = sources.iter().map(|(_, literal)| *literal).collect();
            self.exactly_one(&all);
            self.sources.insert(read, sources);
        }
        let sources = self.sources.get(&read).map_or(&[][..], Vec::as_slice);
        let source = sources.iter().find(|(candidate, _)| *candidate == write);
        source.map_or(RelationTerm::No, |(_, literal)| RelationTerm::If(*literal))
    }

    /// Returns the literal that orders two writes of a storage.
    fn ordered(&mut self, from: usize, to: usize) -> RelationTerm {
        if !self.orders.contains_key(&(from.min(to), from.max(to))) {
            let writes = self.writes(self.skeleton.events[from].storage);
            let order = self.order(&writes);
            self.orders.extend(order);
        }
        precedes(&self.orders, from, to).map_or(RelationTerm::No, RelationTerm::If)
    }

    fn writes(&self, storage: Option<LocationId>) -> Vec<usize> {
        let is_own = |event: &usize| {
            let event = &self.skeleton.events[*event];
            event.storage == storage && event.tags.has(Tags::W) && !event.tags.has(Tags::IW)
        };
        (0..self.skeleton.len()).filter(is_own).collect()
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
    fn both(
        &mut self,
        lower: bool,
        first: impl FnOnce(&mut Self) -> RelationTerm,
        second: impl FnOnce(&mut Self) -> RelationTerm,
    ) -> RelationTerm {
        let first = first(self);
        if first == RelationTerm::No {
            return RelationTerm::No;
        }
        match (first, second(self)) {
            (RelationTerm::Yes, other) | (other, RelationTerm::Yes) => other,
            (RelationTerm::If(a), RelationTerm::If(b)) if a == b => first,
            (RelationTerm::If(a), RelationTerm::If(b)) => {
                // Tseitin encoding: a variable that is equivalent to the conjunction.
                let both = self.solver.defined();
                if !lower {
                    self.solver.clause(&[!both, a]);
                    self.solver.clause(&[!both, b]);
                }
                self.solver.clause(&[!a, !b, both]);
                RelationTerm::If(both)
            }
            _ => RelationTerm::No,
        }
    }

    fn all(&mut self, terms: &[RelationTerm]) -> RelationTerm {
        terms.iter().fold(RelationTerm::Yes, |all, term| self.both(false, |_| all, |_| *term))
    }

    /// Returns the disjunction of terms. With `lower`, the result is implied by it, but does not imply it.
    fn any(&mut self, lower: bool, terms: &[RelationTerm]) -> RelationTerm {
        let mut open: Vec<Literal> = Vec::new();
        for term in terms {
            match term {
                RelationTerm::Yes => return RelationTerm::Yes,
                RelationTerm::No => {}
                RelationTerm::If(literal) => open.push(*literal),
            }
        }
        // Several paths between two events may share their one open edge, so terms repeat.
        open.sort_unstable();
        open.dedup();
        match open.as_slice() {
            [] => RelationTerm::No,
            [one] => RelationTerm::If(*one),
            _ => {
                let any = self.solver.defined();
                open.iter().for_each(|literal| self.solver.clause(&[!*literal, any]));
                if !lower {
                    open.push(!any);
                    self.solver.clause(&open);
                }
                RelationTerm::If(any)
            }
        }
    }
}

fn precedes(before: &QuickMap<(usize, usize), Literal>, from: usize, to: usize) -> Option<Literal> {
    match from < to {
        true => before.get(&(from, to)).copied(),
        false => before.get(&(to, from)).map(|literal| !*literal),
    }
}

/// Returns the strongly connected components that contain cycles, with events in ascending order.
fn components<M: Matrix>(relation: &M, n: usize) -> Vec<Vec<usize>> {
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
