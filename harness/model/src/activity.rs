//! Activity analysis: which choices of reads-from and modification order can affect an axiom or a flag.
//!
//! A backward data-flow analysis from the axioms to the leaves `rf` and `co`. A pair of a node is *active* if
//! some axiom may depend on it. While every composition stays within one location, the flow is *local*, and
//! the locations can be solved one by one. Every other pair is *global* and is chosen first.

use crate::cat::{AxiomKind, CatValue, NodeId, NodeKind, PlanNode};
use crate::interval::Bounds;
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;

/// The active pairs of every node that depends on a choice.
#[derive(Debug)]
pub(crate) struct Activity<M: Matrix> {
    /// Pairs whose effect may cross locations.
    global: Vec<CatValue<M>>,
    /// Pairs whose effect stays within one location.
    local: Vec<CatValue<M>>,
    /// The first node that depends on a choice.
    first_dynamic: usize,
    /// For each node from `first_dynamic` on: true if its pairs within a location follow from its operands'
    /// pairs there.
    stays_in_location: Vec<bool>,
    /// For each axiom: true if it can be checked location by location.
    pub(crate) axiom_is_local: Vec<bool>,
}

impl<M: Matrix> Activity<M> {
    /// Computes the activity of all nodes, given their bounds. `same_location` is the base relation `loc`.
    pub(crate) fn new(prepared: &PreparedPlan, bounds: &Bounds<M>, same_location: &M) -> Activity<M> {
        let n = bounds.n;
        let (plan, first_dynamic) = (&prepared.plan, prepared.first_dynamic);
        let empty: Vec<CatValue<M>> =
            plan.nodes[first_dynamic..].iter().map(|node| CatValue::new_empty(node.kind(), n)).collect();
        let mut activity = Activity {
            global: empty.clone(),
            local: empty,
            first_dynamic,
            stays_in_location: Vec::new(),
            axiom_is_local: Vec::new(),
        };
        let same_location_pairs = same_location.optional(n);
        activity.stays_in_location = plan.nodes[first_dynamic..]
            .iter()
            .map(|node| operator_stays_in_location(*node, bounds, &same_location_pairs))
            .collect();
        for axiom in &plan.axioms {
            let node = axiom.node;
            let open = open_pairs(bounds, node);
            let stays = match bounds.may(node) {
                CatValue::Relation(may) => may.is_subset(&same_location_pairs),
                CatValue::Set(_) => false,
            };
            // Over events without a location, an irreflexive or acyclic relation is either static or global.
            let local = stays && !axiom.negated && !axiom.is_flag;
            activity.axiom_is_local.push(local);
            // Only the diagonal of an irreflexive relation is checked.
            let open = match (axiom.kind, open) {
                (AxiomKind::Irreflexive, CatValue::Relation(open)) => {
                    CatValue::Relation(open.intersection(&M::identity(n)))
                }
                (_, open) => open,
            };
            activity.add_active(node, open, local);
        }
        for size in &plan.size_constraints {
            let open = open_pairs(bounds, size.node);
            activity.add_active(size.node, open, false);
        }
        // A group of recursive definitions is one step: if any member is active, all are.
        for index in (first_dynamic..plan.nodes.len()).rev() {
            let id = NodeId(index as u32);
            let slot = index - first_dynamic;
            if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1) {
                let range = group.nodes.start as usize..group.nodes.end as usize;
                let used = range.clone().any(|i| activity.is_active(NodeId(i as u32)));
                if used {
                    for i in range {
                        activity.global[i - first_dynamic] = open_pairs(bounds, NodeId(i as u32));
                        // The fixpoint may compose across locations, so all of its activity counts
                        // as global.
                        activity.local[i - first_dynamic] = CatValue::new_empty(plan.nodes[i].kind(), n);
                    }
                }
            }
            let node = plan.node_at(id);
            for local in [false, true] {
                let active = if local { &activity.local[slot] } else { &activity.global[slot] };
                if !active.is_empty() {
                    let active = active.clone();
                    activity.propagate_to_operands(bounds, &same_location_pairs, node, &active, local);
                }
            }
        }
        activity
    }

    fn add_active(&mut self, node: NodeId, active: CatValue<M>, local: bool) {
        // Nodes that depend only on the program are never active.
        let Some(index) = node.to_index().checked_sub(self.first_dynamic) else { return };
        let slot = if local { &mut self.local[index] } else { &mut self.global[index] };
        match (slot, active) {
            (CatValue::Set(old), CatValue::Set(new)) => *old = old.union(new),
            (CatValue::Relation(old), CatValue::Relation(new)) => old.union_with(&new),
            _ => {}
        }
    }

    /// Propagates the activity of a node to its operands.
    fn propagate_to_operands(
        &mut self,
        bounds: &Bounds<M>,
        same_location_pairs: &M,
        node: PlanNode,
        active: &CatValue<M>,
        local: bool,
    ) {
        let may =
            |id: NodeId| -> M { bounds.may(id).as_relation().cloned().unwrap_or_else(|| M::empty(bounds.n)) };
        let mut send = |id: NodeId, active: CatValue<M>, local: bool| {
            // Such nodes depend on no choice: none of their pairs is open.
            if id.to_index() < self.first_dynamic {
                return;
            }
            let open = match (open_pairs(bounds, id), active) {
                (CatValue::Set(open), CatValue::Set(active)) => CatValue::Set(open.intersection(active)),
                (CatValue::Relation(open), CatValue::Relation(active)) => {
                    CatValue::Relation(open.intersection(&active))
                }
                (open, _) => open,
            };
            if !open.is_empty() {
                self.add_active(id, open, local);
            }
        };
        match (node, active) {
            (
                PlanNode::SetUnion(a, b) | PlanNode::SetIntersection(a, b) | PlanNode::SetDifference(a, b),
                CatValue::Set(set),
            ) => {
                send(a, CatValue::Set(*set), local);
                send(b, CatValue::Set(*set), local);
            }
            (PlanNode::SetComplement(a), CatValue::Set(set)) => send(a, CatValue::Set(*set), local),
            (PlanNode::Domain(a), CatValue::Set(set)) => {
                let rows = may(a).restrict_rows(*set);
                send(a, CatValue::Relation(rows), local && may(a).is_subset(same_location_pairs));
            }
            (PlanNode::Range(a), CatValue::Set(set)) => {
                let columns = may(a).restrict_columns(*set);
                send(a, CatValue::Relation(columns), local && may(a).is_subset(same_location_pairs));
            }
            (
                PlanNode::Union(a, b) | PlanNode::Intersection(a, b) | PlanNode::Difference(a, b),
                CatValue::Relation(pairs),
            ) => {
                send(a, CatValue::Relation(pairs.clone()), local);
                send(b, CatValue::Relation(pairs.clone()), local);
            }
            (PlanNode::Complement(a) | PlanNode::Optional(a), CatValue::Relation(pairs)) => {
                send(a, CatValue::Relation(pairs.clone()), local);
            }
            (PlanNode::Inverse(a), CatValue::Relation(pairs)) => {
                send(a, CatValue::Relation(pairs.transpose()), local);
            }
            (PlanNode::Sequence(a, b), CatValue::Relation(pairs)) => {
                let (left, right) = (may(a), may(b));
                // A local result has both ends in one location. If one step stays in its location,
                // so does the other.
                let stays =
                    local && (left.is_subset(same_location_pairs) || right.is_subset(same_location_pairs));
                // A step (x, z) of `a` matters if `b` may continue from z to the end of an active
                // pair that starts at x.
                send(a, CatValue::Relation(pairs.compose(&right.transpose())), stays);
                send(b, CatValue::Relation(left.transpose().compose(pairs)), stays);
            }
            (PlanNode::Plus(a) | PlanNode::Star(a) | PlanNode::Immediate(a), CatValue::Relation(pairs)) => {
                let step = may(a);
                let stays = local && step.is_subset(same_location_pairs);
                // A step matters if possible steps before and after it complete an active pair.
                let around = step.star(bounds.n).transpose();
                send(a, CatValue::Relation(around.compose(pairs).compose(&around)), stays);
            }
            (PlanNode::IdentityOn(a), CatValue::Relation(pairs)) => {
                send(a, CatValue::Set(pairs.intersection(&M::identity(bounds.n)).domain()), local);
            }
            (PlanNode::Product(a, b), CatValue::Relation(pairs)) => {
                send(a, CatValue::Set(pairs.domain()), local);
                send(b, CatValue::Set(pairs.range()), local);
            }
            (PlanNode::RestrictRows(s, r), CatValue::Relation(pairs)) => {
                send(s, CatValue::Set(pairs.domain()), local);
                send(r, CatValue::Relation(pairs.clone()), local);
            }
            (PlanNode::RestrictColumns(r, s), CatValue::Relation(pairs)) => {
                send(s, CatValue::Set(pairs.range()), local);
                send(r, CatValue::Relation(pairs.clone()), local);
            }
            // A recursive group propagates activity to its operands outside the group as a whole.
            _ => {}
        }
    }

    /// Returns true if the node is active, globally or locally.
    pub(crate) fn is_active(&self, node: NodeId) -> bool {
        self.active_pairs(node, true).is_some_and(|part| !part.is_empty())
            || self.active_pairs(node, false).is_some_and(|part| !part.is_empty())
    }

    /// Returns true if the node's pairs within a location follow from its operands' pairs there, for every
    /// choice. A node that composes across locations must be evaluated on all events, even if none of its
    /// pairs is active.
    pub(crate) fn stays_in_location(&self, node: NodeId) -> bool {
        node.to_index()
            .checked_sub(self.first_dynamic)
            .and_then(|index| self.stays_in_location.get(index))
            .copied()
            .unwrap_or(false)
    }

    /// Returns the local or global active pairs of a node; `None` for static nodes.
    pub(crate) fn active_pairs(&self, node: NodeId, local: bool) -> Option<&CatValue<M>> {
        let index = node.to_index().checked_sub(self.first_dynamic)?;
        if local { self.local.get(index) } else { self.global.get(index) }
    }
}

fn operator_stays_in_location<M: Matrix>(
    node: PlanNode,
    bounds: &Bounds<M>,
    same_location_pairs: &M,
) -> bool {
    let inside =
        |id: NodeId| bounds.may(id).as_relation().is_some_and(|may| may.is_subset(same_location_pairs));
    match node {
        PlanNode::Sequence(a, b) => inside(a) || inside(b),
        PlanNode::Plus(a)
        | PlanNode::Star(a)
        | PlanNode::Immediate(a)
        | PlanNode::Domain(a)
        | PlanNode::Range(a) => inside(a),
        PlanNode::Recursive { .. } => false,
        _ => true,
    }
}

/// Returns the pairs of a node that its bounds leave open.
fn open_pairs<M: Matrix>(bounds: &Bounds<M>, node: NodeId) -> CatValue<M> {
    match (bounds.may(node), bounds.must(node)) {
        (CatValue::Set(may), CatValue::Set(must)) => CatValue::Set(may.difference(*must)),
        (CatValue::Relation(may), CatValue::Relation(must)) => CatValue::Relation(may.difference(must)),
        (may, _) => match may {
            CatValue::Set(_) => CatValue::new_empty(NodeKind::Set, bounds.n),
            CatValue::Relation(_) => CatValue::new_empty(NodeKind::Relation, bounds.n),
        },
    }
}
