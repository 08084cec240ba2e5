//! Activity analysis: which choices of reads-from and modification order can affect an axiom or a flag.
//!
//! A backward data-flow analysis from the axioms to the leaves `rf` and `co`. A pair of a node is *active* if
//! some axiom may depend on it. While every composition stays within one location, the flow is *local*, and
//! the locations can be solved one by one. Every other pair is *global* and is chosen first.

use crate::cat::{AxiomKind, Node, NodeId, NodeKind, Value};
use crate::interval::Bounds;
use crate::matrix::{Bits, Matrix};
use crate::prepared::Prepared;

/// The active pairs of every node that depends on a choice.
#[derive(Debug)]
pub(crate) struct Activity<M: Matrix> {
    /// Pairs whose effect may cross locations.
    global: Vec<Value<M>>,
    /// Pairs whose effect stays within one location.
    local: Vec<Value<M>>,
    /// The first node that depends on a choice.
    fixed: usize,
    /// For each node from `fixed` on: true if its pairs within a location follow from its operands' pairs
    /// there.
    within: Vec<bool>,
    /// For each axiom: true if it can be checked location by location.
    pub(crate) axiom_is_local: Vec<bool>,
}

impl<M: Matrix> Activity<M> {
    /// Computes the activity of all nodes, given their bounds. `same_location` is the base relation `loc`.
    pub(crate) fn new(prepared: &Prepared, bounds: &Bounds<M>, same_location: &M) -> Activity<M> {
        let n = bounds.n;
        let (plan, fixed) = (&prepared.plan, prepared.fixed);
        let empty: Vec<Value<M>> =
            plan.nodes[fixed..].iter().map(|node| Value::empty(node.kind(), n)).collect();
        let mut activity = Activity {
            global: empty.clone(),
            local: empty,
            fixed,
            within: Vec::new(),
            axiom_is_local: Vec::new(),
        };
        let within = same_location.optional(n);
        activity.within =
            plan.nodes[fixed..].iter().map(|node| stays_within(*node, bounds, &within)).collect();
        for axiom in &plan.axioms {
            let node = axiom.node;
            let open = open_part(bounds, node);
            let stays = match bounds.may(node) {
                Value::Relation(may) => may.is_subset(&within),
                Value::Set(_) => false,
            };
            // Over events without a location, an irreflexive or acyclic relation is either static or global.
            let local = stays && !axiom.negated && !axiom.flag;
            activity.axiom_is_local.push(local);
            let open = match (axiom.kind, open) {
                (AxiomKind::Irreflexive, Value::Relation(open)) => {
                    Value::Relation(open.intersection(&M::identity(n)))
                }
                (_, open) => open,
            };
            activity.add(node, open, local);
        }
        for size in &plan.sizes {
            let open = open_part(bounds, size.node);
            activity.add(size.node, open, false);
        }
        // A group of recursive definitions is one step: if any member is active, all are.
        for index in (fixed..plan.nodes.len()).rev() {
            let id = NodeId(index as u32);
            let slot = index - fixed;
            if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1) {
                let range = group.nodes.start as usize..group.nodes.end as usize;
                let used = range.clone().any(|i| activity.is_active(NodeId(i as u32)));
                if used {
                    for i in range {
                        activity.global[i - fixed] = open_part(bounds, NodeId(i as u32));
                        activity.local[i - fixed] = Value::empty(plan.nodes[i].kind(), n);
                    }
                }
            }
            let node = plan.node(id);
            for local in [false, true] {
                let active = if local { &activity.local[slot] } else { &activity.global[slot] };
                if !active.is_empty() {
                    let active = active.clone();
                    activity.flow(bounds, &within, node, &active, local);
                }
            }
        }
        activity
    }

    fn add(&mut self, node: NodeId, active: Value<M>, local: bool) {
        // Nodes that the program alone decides are never active.
        let Some(index) = node.index().checked_sub(self.fixed) else { return };
        let slot = if local { &mut self.local[index] } else { &mut self.global[index] };
        match (slot, active) {
            (Value::Set(old), Value::Set(new)) => *old = old.union(new),
            (Value::Relation(old), Value::Relation(new)) => old.union_with(&new),
            _ => {}
        }
    }

    /// Propagates the activity of a node to its operands.
    fn flow(&mut self, bounds: &Bounds<M>, within: &M, node: Node, active: &Value<M>, local: bool) {
        let may =
            |id: NodeId| -> M { bounds.may(id).relation().cloned().unwrap_or_else(|| M::empty(bounds.n)) };
        let mut send = |id: NodeId, wanted: Value<M>, local: bool| {
            if id.index() < self.fixed {
                return;
            }
            let open = match (open_part(bounds, id), wanted) {
                (Value::Set(open), Value::Set(wanted)) => Value::Set(open.intersection(wanted)),
                (Value::Relation(open), Value::Relation(wanted)) => {
                    Value::Relation(open.intersection(&wanted))
                }
                (open, _) => open,
            };
            if !open.is_empty() {
                self.add(id, open, local);
            }
        };
        match (node, active) {
            (
                Node::SetUnion(a, b) | Node::SetIntersection(a, b) | Node::SetDifference(a, b),
                Value::Set(set),
            ) => {
                send(a, Value::Set(*set), local);
                send(b, Value::Set(*set), local);
            }
            (Node::SetComplement(a), Value::Set(set)) => send(a, Value::Set(*set), local),
            (Node::Domain(a), Value::Set(set)) => {
                let rows = may(a).restrict_rows(*set);
                send(a, Value::Relation(rows), local && may(a).is_subset(within));
            }
            (Node::Range(a), Value::Set(set)) => {
                let columns = may(a).restrict_columns(*set);
                send(a, Value::Relation(columns), local && may(a).is_subset(within));
            }
            (
                Node::Union(a, b) | Node::Intersection(a, b) | Node::Difference(a, b),
                Value::Relation(pairs),
            ) => {
                send(a, Value::Relation(pairs.clone()), local);
                send(b, Value::Relation(pairs.clone()), local);
            }
            (Node::Complement(a) | Node::Optional(a), Value::Relation(pairs)) => {
                send(a, Value::Relation(pairs.clone()), local);
            }
            (Node::Inverse(a), Value::Relation(pairs)) => {
                send(a, Value::Relation(pairs.transpose()), local);
            }
            (Node::Sequence(a, b), Value::Relation(pairs)) => {
                let (left, right) = (may(a), may(b));
                let stays = local && (left.is_subset(within) || right.is_subset(within));
                send(a, Value::Relation(pairs.compose(&right.transpose())), stays);
                send(b, Value::Relation(left.transpose().compose(pairs)), stays);
            }
            (Node::Plus(a) | Node::Star(a) | Node::Immediate(a), Value::Relation(pairs)) => {
                let step = may(a);
                let stays = local && step.is_subset(within);
                let around = step.star(bounds.n).transpose();
                send(a, Value::Relation(around.compose(pairs).compose(&around)), stays);
            }
            (Node::IdentityOn(a), Value::Relation(pairs)) => {
                send(a, Value::Set(pairs.intersection(&M::identity(bounds.n)).domain()), local);
            }
            (Node::Product(a, b), Value::Relation(pairs)) => {
                send(a, Value::Set(pairs.domain()), local);
                send(b, Value::Set(pairs.range()), local);
            }
            (Node::RestrictRows(s, r), Value::Relation(pairs)) => {
                send(s, Value::Set(pairs.domain()), local);
                send(r, Value::Relation(pairs.clone()), local);
            }
            (Node::RestrictColumns(r, s), Value::Relation(pairs)) => {
                send(s, Value::Set(pairs.range()), local);
                send(r, Value::Relation(pairs.clone()), local);
            }
            // A recursive group propagates activity to its operands outside the group as a whole.
            _ => {}
        }
    }

    /// Returns true if the node is active, globally or locally.
    pub(crate) fn is_active(&self, node: NodeId) -> bool {
        self.part(node, true).is_some_and(|part| !part.is_empty())
            || self.part(node, false).is_some_and(|part| !part.is_empty())
    }

    /// Returns true if the node's pairs within a location follow from its operands' pairs there, for every
    /// choice. A node that composes across locations must be evaluated on all events, even if none of its
    /// pairs is active.
    pub(crate) fn stays_within(&self, node: NodeId) -> bool {
        node.index()
            .checked_sub(self.fixed)
            .and_then(|index| self.within.get(index))
            .copied()
            .unwrap_or(false)
    }

    /// Returns the local or global active pairs of a node; `None` for static nodes.
    pub(crate) fn part(&self, node: NodeId, local: bool) -> Option<&Value<M>> {
        let index = node.index().checked_sub(self.fixed)?;
        if local { self.local.get(index) } else { self.global.get(index) }
    }
}

fn stays_within<M: Matrix>(node: Node, bounds: &Bounds<M>, within: &M) -> bool {
    let inside = |id: NodeId| bounds.may(id).relation().is_some_and(|may| may.is_subset(within));
    match node {
        Node::Sequence(a, b) => inside(a) || inside(b),
        Node::Plus(a) | Node::Star(a) | Node::Immediate(a) | Node::Domain(a) | Node::Range(a) => inside(a),
        Node::Recursive { .. } => false,
        _ => true,
    }
}

/// Returns the pairs of a node that its bounds leave open.
fn open_part<M: Matrix>(bounds: &Bounds<M>, node: NodeId) -> Value<M> {
    match (bounds.may(node), bounds.must(node)) {
        (Value::Set(may), Value::Set(must)) => Value::Set(may.difference(*must)),
        (Value::Relation(may), Value::Relation(must)) => Value::Relation(may.difference(must)),
        (may, _) => match may {
            Value::Set(_) => Value::empty(NodeKind::Set, bounds.n),
            Value::Relation(_) => Value::empty(NodeKind::Relation, bounds.n),
        },
    }
}
