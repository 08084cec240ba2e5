//! Evaluation of a plan while reads-from and modification order are only partly known: what each node holds at least
//! and at most.

use std::ops::Range;

use crate::cat::{Group, Kind, Node, NodeId, Plan, Value, apply_node};
use crate::matrix::{Bits, Matrix};

/// Lower and upper bounds of every node of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Bounds<M: Matrix> {
    /// What is in the node whatever is chosen.
    pub(crate) must: Vec<Value<M>>,
    /// What is in the node for some choice.
    pub(crate) may: Vec<Value<M>>,
    /// Number of events.
    pub(crate) n: usize,
}

impl<M: Matrix> Bounds<M> {
    pub(crate) fn new(plan: &Plan, n: usize) -> Bounds<M> {
        let empty: Vec<Value<M>> = plan.nodes.iter().map(|node| Value::empty(node.kind(), n)).collect();
        Bounds { must: empty.clone(), may: empty, n }
    }

    pub(crate) fn set(&mut self, node: NodeId, must: Value<M>, may: Value<M>) {
        self.must[node.index()] = must;
        self.may[node.index()] = may;
    }

    /// The bounds of a few nodes, for [`Bounds::restore`]. A search saves the leaves alone: whatever depends on them is
    /// evaluated again after the next choice.
    pub(crate) fn save(&self, nodes: &[NodeId]) -> Vec<(Value<M>, Value<M>)> {
        nodes.iter().map(|id| (self.must[id.index()].clone(), self.may[id.index()].clone())).collect()
    }

    pub(crate) fn restore(&mut self, nodes: &[NodeId], saved: &[(Value<M>, Value<M>)]) {
        for (id, (must, may)) in nodes.iter().zip(saved) {
            self.set(*id, must.clone(), may.clone());
        }
    }

    /// Evaluates the given nodes in order. Leaves must be set before; groups are evaluated as a whole.
    pub(crate) fn evaluate(&mut self, plan: &Plan, nodes: &[NodeId]) {
        let mut skip: Range<u32> = 0..0;
        for &id in nodes {
            if skip.contains(&id.0) {
                continue;
            }
            match plan.node(id) {
                Node::BaseSet(_) | Node::BaseRelation(_) => {}
                Node::Recursive { group, .. } => {
                    let group = &plan.groups[group.0 as usize];
                    self.evaluate_group(plan, group);
                    skip = group.nodes.clone();
                }
                node => self.apply(id, node),
            }
        }
    }

    fn evaluate_group(&mut self, plan: &Plan, group: &Group) {
        let start = group.nodes.start as usize;
        let inner = start + group.bodies.len()..group.nodes.end as usize;
        for member in start..inner.start {
            let kind: Kind = plan.nodes[member].kind();
            self.must[member] = Value::empty(kind, self.n);
            self.may[member] = Value::empty(kind, self.n);
        }
        loop {
            for id in inner.clone() {
                self.apply(NodeId(id as u32), plan.nodes[id]);
            }
            let mut changed = false;
            for (member, body) in (start..).zip(&group.bodies) {
                if self.must[member] != self.must[body.index()] || self.may[member] != self.may[body.index()]
                {
                    self.must[member] = self.must[body.index()].clone();
                    self.may[member] = self.may[body.index()].clone();
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    #[inline]
    fn apply(&mut self, id: NodeId, node: Node) {
        let n = self.n;
        let (must, may) = match node {
            Node::SetDifference(a, b) => {
                let (Some(a0), Some(a1), Some(b0), Some(b1)) = (
                    self.must[a.index()].set(),
                    self.may[a.index()].set(),
                    self.must[b.index()].set(),
                    self.may[b.index()].set(),
                ) else {
                    return;
                };
                (Value::Set(a0.difference(b1)), Value::Set(a1.difference(b0)))
            }
            Node::SetComplement(a) => {
                let (Some(a0), Some(a1)) = (self.must[a.index()].set(), self.may[a.index()].set()) else {
                    return;
                };
                (Value::Set(a1.complement(n)), Value::Set(a0.complement(n)))
            }
            Node::Difference(a, b) => {
                let (Some(a0), Some(a1), Some(b0), Some(b1)) = (
                    self.must[a.index()].relation(),
                    self.may[a.index()].relation(),
                    self.must[b.index()].relation(),
                    self.may[b.index()].relation(),
                ) else {
                    return;
                };
                (Value::Relation(a0.difference(b1)), Value::Relation(a1.difference(b0)))
            }
            Node::Complement(a) => {
                let (Some(a0), Some(a1)) = (self.must[a.index()].relation(), self.may[a.index()].relation())
                else {
                    return;
                };
                (Value::Relation(a1.complement(n)), Value::Relation(a0.complement(n)))
            }
            Node::Immediate(a) => {
                let (Some(a0), Some(a1)) = (self.must[a.index()].relation(), self.may[a.index()].relation())
                else {
                    return;
                };
                (
                    Value::Relation(a0.difference(&a1.compose(&a1.plus()))),
                    Value::Relation(a1.difference(&a0.compose(&a0.plus()))),
                )
            }
            // Every other operation is monotone in its operands.
            node => {
                let settled =
                    node.operands().all(|operand| self.must[operand.index()] == self.may[operand.index()]);
                let Some(must) = apply_node(node, &self.must, n) else { return };
                if settled {
                    (must.clone(), must)
                } else {
                    let Some(may) = apply_node(node, &self.may, n) else { return };
                    (must, may)
                }
            }
        };
        self.must[id.index()] = must;
        self.may[id.index()] = may;
    }
}
