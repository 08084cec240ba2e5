//! Interval evaluation of a plan: the pairs that each node must and may contain while `rf` and `co` are
//! partial.
//!
//! Sound in both directions: `must` is a subset and `may` a superset of the node's value in every completion.

use std::ops::Range;

use crate::cat::{CatValue, CompiledModel, NodeId, NodeKind, PlanNode, RecursionGroup, apply_node_with};
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;

/// Lower and upper bounds of every node of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Bounds<M: Matrix> {
    /// Pairs that every completion contains.
    must: Vec<CatValue<M>>,
    /// Pairs that some completion may contain. Before node `first_dynamic` both bounds are equal.
    may: Vec<CatValue<M>>,
    first_dynamic: usize,
    /// Number of events.
    pub(crate) n: usize,
    /// If events may be missing from an execution, the pairs whose first event executes only if the second does. A pair
    /// then belongs to a bound if it does in every or some execution of both of its events.
    implied: Option<M>,
}

/// The bounds of a node to evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedBounds {
    pub(crate) node: NodeId,
    pub(crate) must: bool,
    pub(crate) may: bool,
}

impl<M: Matrix> Bounds<M> {
    /// Creates bounds in which every node is empty.
    pub(crate) fn new(prepared: &PreparedPlan, n: usize, implied: Option<M>) -> Bounds<M> {
        let empty =
            |nodes: &[PlanNode]| nodes.iter().map(|node| CatValue::new_empty(node.kind(), n)).collect();
        let nodes = &prepared.plan.nodes;
        Bounds {
            must: empty(nodes),
            may: empty(&nodes[prepared.first_dynamic..]),
            first_dynamic: prepared.first_dynamic,
            n,
            implied,
        }
    }

    /// Returns the pairs of a sequence of which both steps are certain, and whose middle event executes if one of the
    /// other two does.
    fn compose_certain(&self, first: &M, second: &M) -> M {
        match &self.implied {
            None => first.compose(second),
            Some(implied) => {
                let by_first = first.intersection(implied).compose(second);
                by_first.union(&first.compose(&second.intersection(&implied.transpose())))
            }
        }
    }

    /// Returns the lower bound of a node of which a third event, which may be missing, decides whether pairs belong to it.
    fn certain_value(&self, node: PlanNode) -> Option<CatValue<M>> {
        let n = self.n;
        let implied = self.implied.as_ref()?;
        let relation = |id| self.must(id).as_relation();
        Some(match node {
            PlanNode::Sequence(a, b) => CatValue::Relation(self.compose_certain(relation(a)?, relation(b)?)),
            PlanNode::Plus(a) | PlanNode::Star(a) => {
                let mut closure = relation(a)?.clone();
                loop {
                    let longer = closure.union(&self.compose_certain(&closure, &closure));
                    if longer == closure {
                        break;
                    }
                    closure = longer;
                }
                if matches!(node, PlanNode::Star(_)) {
                    closure.union_with(&M::identity(n));
                }
                CatValue::Relation(closure)
            }
            PlanNode::Domain(a) | PlanNode::Range(a) => {
                let pairs = relation(a)?;
                let pairs =
                    if matches!(node, PlanNode::Range(_)) { pairs.transpose() } else { pairs.clone() };
                let pairs = pairs.intersection(implied);
                let mut members = M::Set::empty();
                (0..n).filter(|event| !pairs.row(*event).is_empty()).for_each(|event| members.insert(event));
                CatValue::Set(members)
            }
            _ => return None,
        })
    }

    /// Returns the pairs that every completion contains.
    #[inline(always)]
    pub(crate) fn must(&self, node: NodeId) -> &CatValue<M> {
        &self.must[node.to_index()]
    }

    /// Returns the pairs that some completion may contain.
    #[inline(always)]
    pub(crate) fn may(&self, node: NodeId) -> &CatValue<M> {
        let index = node.to_index();
        // Static nodes store one value for both bounds.
        if index < self.first_dynamic { &self.must[index] } else { &self.may[index - self.first_dynamic] }
    }

    /// Returns the lower bound of a relation, mutably.
    pub(crate) fn must_relation(&mut self, node: NodeId) -> Option<&mut M> {
        match &mut self.must[node.to_index()] {
            CatValue::Relation(relation) => Some(relation),
            CatValue::Set(_) => None,
        }
    }

    /// Returns the upper bound of a relation that depends on a choice, mutably.
    pub(crate) fn may_relation(&mut self, node: NodeId) -> Option<&mut M> {
        match self.may.get_mut(node.to_index().checked_sub(self.first_dynamic)?)? {
            CatValue::Relation(relation) => Some(relation),
            CatValue::Set(_) => None,
        }
    }

    pub(crate) fn set(&mut self, node: NodeId, must: CatValue<M>, may: CatValue<M>) {
        let index = node.to_index();
        self.must[index] = must;
        if index >= self.first_dynamic {
            self.may[index - self.first_dynamic] = may;
        }
    }

    /// Returns the bounds of a few nodes, for [`Bounds::restore`].
    ///
    /// A search saves only the leaves, since all dependent nodes are evaluated again after the next choice.
    pub(crate) fn save(&self, nodes: &[NodeId]) -> Vec<(CatValue<M>, CatValue<M>)> {
        nodes.iter().map(|id| (self.must(*id).clone(), self.may(*id).clone())).collect()
    }

    pub(crate) fn restore(&mut self, nodes: &[NodeId], saved: &[(CatValue<M>, CatValue<M>)]) {
        for (id, (must, may)) in nodes.iter().zip(saved) {
            self.set(*id, must.clone(), may.clone());
        }
    }

    /// Evaluates all nodes except the bases, which must be set.
    pub(crate) fn evaluate_all(&mut self, plan: &CompiledModel) {
        let first_dynamic = self.first_dynamic;
        let mut index = 0;
        while index < plan.nodes.len() {
            let node = plan.nodes[index];
            match node {
                PlanNode::BaseSet(_) | PlanNode::BaseRelation(_) => {}
                PlanNode::Recursive { group, .. } => {
                    let group = &plan.groups[group.0 as usize];
                    self.evaluate_group(plan, group);
                    index = group.nodes.end as usize;
                    continue;
                }
                node => {
                    let n = self.n;
                    if index < first_dynamic {
                        if let Some(value) = apply_node_with(node, |id| self.must.get(id.to_index()), n) {
                            self.must[index] = value;
                        }
                    } else {
                        self.evaluate_node(NodeId(index as u32), node, true, true);
                    }
                }
            }
            index += 1;
        }
    }

    /// Evaluates the wanted bounds, in order. Their operands must be set or evaluated; groups are evaluated
    /// as a whole.
    pub(crate) fn evaluate(&mut self, plan: &CompiledModel, requested: &[RequestedBounds]) {
        let mut skip: Range<u32> = 0..0;
        for &RequestedBounds { node: id, must, may } in requested {
            if skip.contains(&id.0) {
                continue;
            }
            match plan.node_at(id) {
                PlanNode::BaseSet(_) | PlanNode::BaseRelation(_) => {}
                PlanNode::Recursive { group, .. } => {
                    let group = &plan.groups[group.0 as usize];
                    self.evaluate_group(plan, group);
                    skip = group.nodes.clone();
                }
                node => self.evaluate_node(id, node, must, may),
            }
        }
    }

    fn evaluate_group(&mut self, plan: &CompiledModel, group: &RecursionGroup) {
        let start = group.nodes.start as usize;
        let inner = start + group.bodies.len()..group.nodes.end as usize;
        // A least fixpoint is monotone in its operands, so iterating both bounds from the empty
        // relation bounds it from both sides.
        for member in start..inner.start {
            let kind: NodeKind = plan.nodes[member].kind();
            self.set(
                NodeId(member as u32),
                CatValue::new_empty(kind, self.n),
                CatValue::new_empty(kind, self.n),
            );
        }
        loop {
            for id in inner.clone() {
                self.evaluate_node(NodeId(id as u32), plan.nodes[id], true, true);
            }
            let mut changed = false;
            for (member, body) in (start..).zip(&group.bodies) {
                let member = NodeId(member as u32);
                if self.must(member) != self.must(*body) || self.may(member) != self.may(*body) {
                    let (must, may) = (self.must(*body).clone(), self.may(*body).clone());
                    self.set(member, must, may);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    #[inline]
    fn evaluate_node(&mut self, id: NodeId, node: PlanNode, must: bool, may: bool) {
        let index = id.to_index();
        if must && let Some(value) = self.compute_bound(node, true) {
            self.must[index] = value;
        }
        if may
            && index >= self.first_dynamic
            && let Some(value) = self.compute_bound(node, false)
        {
            self.may[index - self.first_dynamic] = value;
        }
    }

    /// Computes the lower or the upper bound of a node from the bounds of its operands.
    #[inline(always)]
    fn compute_bound(&self, node: PlanNode, is_lower: bool) -> Option<CatValue<M>> {
        if let PlanNode::Immediate(a) = node {
            // A pair is certainly immediate if no completion has an intermediate event, so the
            // certain pairs exclude the possible paths and vice versa.
            let bounds = [self.must(a).as_relation()?, self.may(a).as_relation()?];
            let [pairs, paths] = if is_lower { bounds } else { [bounds[1], bounds[0]] };
            return Some(CatValue::Relation(pairs.difference(&paths.compose(&paths.plus()))));
        }
        if is_lower && let Some(value) = self.certain_value(node) {
            return Some(value);
        }
        // Every operation is monotone or antitone in each operand; the latter contributes its opposite bound.
        let bound = |id| match is_lower != node.is_antitone_in(id) {
            true => Some(self.must(id)),
            false => Some(self.may(id)),
        };
        apply_node_with(node, bound, self.n)
    }
}

/// The lower and the upper bound of each node, true if it is needed.
type Requests = [(bool, bool)];

fn add_request(slot: &mut (bool, bool), (must, may): (bool, bool)) {
    *slot = (slot.0 | must, slot.1 | may);
}

/// Adds the bounds of its operands that the needed bounds of a node depend on.
fn request_operands(node: PlanNode, requested: &mut Requests, index: usize) {
    let (must, may) = requested[index];
    if !must && !may {
        return;
    }
    for operand in node.operand_nodes() {
        let needed = match node {
            PlanNode::Immediate(_) => (true, true),
            // Antitone operands swap the requested bounds.
            _ if node.is_antitone_in(operand) => (may, must),
            _ => (must, may),
        };
        add_request(&mut requested[operand.to_index()], needed);
    }
}

/// Requests what the needed bounds of a recursive group depend on: a member needs the same bounds of its body, which
/// contains members again.
fn request_group(plan: &CompiledModel, group: &RecursionGroup, requested: &mut Requests) {
    loop {
        let before = requested.to_vec();
        for (member, body) in (group.nodes.start as usize..).zip(&group.bodies) {
            add_request(&mut requested[body.to_index()], before[member]);
        }
        for index in (group.nodes.start as usize..group.nodes.end as usize).rev() {
            request_operands(plan.nodes[index], requested, index);
        }
        if before == requested {
            return;
        }
    }
}

/// Returns the bounds of nodes on which the bounds of `roots` depend, in order. Only nodes for which `open` is true
/// can change.
pub(crate) fn needed_bounds(
    prepared: &PreparedPlan,
    roots: impl IntoIterator<Item = RequestedBounds>,
    open: impl Fn(NodeId) -> bool,
) -> Vec<RequestedBounds> {
    let plan = &prepared.plan;
    let mut requested = vec![(false, false); plan.nodes.len()];
    for root in roots {
        add_request(&mut requested[root.node.to_index()], (root.must, root.may));
    }
    for index in (prepared.first_dynamic..plan.nodes.len()).rev() {
        // Nodes are visited from the last to the first, so the end of a group comes first.
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1) {
            request_group(plan, group, &mut requested);
        }
        request_operands(plan.nodes[index], &mut requested, index);
    }
    (prepared.first_dynamic..plan.nodes.len())
        .map(|index| RequestedBounds {
            node: NodeId(index as u32),
            must: requested[index].0,
            may: requested[index].1,
        })
        .filter(|w| (w.must || w.may) && open(w.node))
        .filter(|w| !matches!(plan.node_at(w.node), PlanNode::BaseSet(_) | PlanNode::BaseRelation(_)))
        .collect()
}
