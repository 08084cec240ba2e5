//! Evaluation of a plan on one concrete execution.

use super::plan::{Axiom, AxiomKind, Base, CompiledModel, Group, Node, NodeId, NodeKind};
use crate::matrix::{Bits, Matrix};

/// The value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<M: Matrix> {
    /// Events.
    Set(M::Set),
    /// Pairs of events.
    Relation(M),
}

impl<M: Matrix> Value<M> {
    /// The empty set or relation over n events.
    pub fn empty(kind: NodeKind, n: usize) -> Self {
        match kind {
            NodeKind::Set => Value::Set(M::Set::empty()),
            NodeKind::Relation => Value::Relation(M::empty(n)),
        }
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Set(set) => set.is_empty(),
            Value::Relation(relation) => relation.is_empty(),
        }
    }

    /// The set; `None` for a relation.
    #[inline]
    pub fn set(&self) -> Option<M::Set> {
        match self {
            Value::Set(set) => Some(*set),
            Value::Relation(_) => None,
        }
    }

    /// The relation; `None` for a set.
    #[inline]
    pub fn relation(&self) -> Option<&M> {
        match self {
            Value::Set(_) => None,
            Value::Relation(relation) => Some(relation),
        }
    }
}

/// Supplies the base sets and relations of one execution.
pub trait BaseProvider<M: Matrix> {
    /// The set of that name (and, where the set is indexed by storage classes, of that mask); `None` if there is none.
    fn set(&self, name: &str, mask: Option<u8>) -> Option<M::Set>;

    /// The relation of that name; `None` if there is none.
    fn relation(&self, name: &str, mask: Option<u8>) -> Option<M>;
}

/// A plan asks for a base that its provider does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("evaluate the model: no base set or relation `{name}`")]
pub struct MissingBase {
    /// Its name.
    pub name: String,
}

/// Applies one operation to the values of earlier nodes, over n events.
///
/// `None` for base sets and relations and for members of recursive groups, which are not computed from operands, and
/// where an operand is missing from `values` or of the wrong kind (a plan made by [`compile`](super::compile) never
/// is).
#[inline]
pub fn apply_node<M: Matrix>(node: Node, values: &[Value<M>], n: usize) -> Option<Value<M>> {
    apply_to(node, |id| values.get(id.index()), n)
}

/// [`apply_node`] with the values of earlier nodes given by a function.
#[inline(always)]
pub(crate) fn apply_to<'v, M: Matrix>(
    node: Node,
    value: impl Fn(NodeId) -> Option<&'v Value<M>>,
    n: usize,
) -> Option<Value<M>> {
    let set = |id: NodeId| value(id).and_then(Value::set);
    let relation = |id: NodeId| value(id).and_then(Value::relation);
    let value = match node {
        Node::BaseSet(_) | Node::BaseRelation(_) | Node::Recursive { .. } => return None,
        Node::EmptySet => Value::Set(M::Set::empty()),
        Node::Universe => Value::Set(M::Set::universe(n)),
        Node::SetUnion(a, b) => Value::Set(set(a)?.union(set(b)?)),
        Node::SetIntersection(a, b) => Value::Set(set(a)?.intersection(set(b)?)),
        Node::SetDifference(a, b) => Value::Set(set(a)?.difference(set(b)?)),
        Node::SetComplement(a) => Value::Set(set(a)?.complement(n)),
        Node::Domain(a) => Value::Set(relation(a)?.domain()),
        Node::Range(a) => Value::Set(relation(a)?.range()),
        Node::Empty => Value::Relation(M::empty(n)),
        Node::Identity => Value::Relation(M::identity(n)),
        Node::Full => Value::Relation(M::full(n)),
        Node::IdentityOn(a) => Value::Relation(M::identity_on(n, set(a)?)),
        Node::Product(a, b) => Value::Relation(M::product(n, set(a)?, set(b)?)),
        Node::Union(a, b) => Value::Relation(relation(a)?.union(relation(b)?)),
        Node::Intersection(a, b) => Value::Relation(relation(a)?.intersection(relation(b)?)),
        Node::Difference(a, b) => Value::Relation(relation(a)?.difference(relation(b)?)),
        Node::Complement(a) => Value::Relation(relation(a)?.complement(n)),
        Node::Sequence(a, b) => Value::Relation(relation(a)?.compose(relation(b)?)),
        Node::Inverse(a) => Value::Relation(relation(a)?.transpose()),
        Node::Plus(a) => Value::Relation(relation(a)?.plus()),
        Node::Star(a) => Value::Relation(relation(a)?.star(n)),
        Node::Optional(a) => Value::Relation(relation(a)?.optional(n)),
        Node::Immediate(a) => Value::Relation(relation(a)?.immediate()),
        Node::RestrictRows(s, r) => Value::Relation(relation(r)?.restrict_rows(set(s)?)),
        Node::RestrictColumns(r, s) => Value::Relation(relation(r)?.restrict_columns(set(s)?)),
    };
    Some(value)
}

/// Evaluates a recursive group to its least fixpoint; the values of all nodes that it uses must be in `values`.
///
/// Monotone bodies over finite sets grow at most as often as there are pairs, so this ends.
pub fn evaluate_group<M: Matrix>(plan: &CompiledModel, group: &Group, values: &mut [Value<M>], n: usize) {
    let start = group.nodes.start as usize;
    let inner = start + group.bodies.len()..group.nodes.end as usize;
    for (value, node) in values.iter_mut().zip(&plan.nodes).take(inner.start).skip(start) {
        *value = Value::empty(node.kind(), n);
    }
    loop {
        for id in inner.clone() {
            if let Some(value) = apply_node(plan.nodes[id], values, n) {
                values[id] = value;
            }
        }
        let mut changed = false;
        for (member, body) in (start..).zip(&group.bodies) {
            if values[member] != values[body.index()] {
                values[member] = values[body.index()].clone();
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The value of a base node.
///
/// # Errors
/// When the provider has no such base.
pub fn base_value<M: Matrix>(
    plan: &CompiledModel,
    base: Base,
    kind: NodeKind,
    provider: &impl BaseProvider<M>,
) -> Result<Value<M>, MissingBase> {
    let name = plan.name(base.name);
    match kind {
        NodeKind::Set => provider.set(name, base.mask).map(Value::Set),
        NodeKind::Relation => provider.relation(name, base.mask).map(Value::Relation),
    }
    .ok_or_else(|| MissingBase { name: name.to_owned() })
}

/// Evaluates every node of the plan on an execution of n events; the values stand in the order of the nodes.
///
/// # Errors
/// When the provider lacks a base that the plan uses.
pub fn evaluate<M: Matrix>(
    plan: &CompiledModel,
    provider: &impl BaseProvider<M>,
    n: usize,
) -> Result<Vec<Value<M>>, MissingBase> {
    let mut values: Vec<Value<M>> = plan.nodes.iter().map(|node| Value::empty(node.kind(), n)).collect();
    let mut groups = plan.groups.iter().peekable();
    let mut id = 0;
    while let Some(&node) = plan.nodes.get(id) {
        if let Some(group) = groups.next_if(|group| group.nodes.start as usize == id) {
            evaluate_group(plan, group, &mut values, n);
            id = group.nodes.end as usize;
            continue;
        }
        match node {
            Node::BaseSet(base) | Node::BaseRelation(base) => {
                values[id] = base_value(plan, base, node.kind(), provider)?;
            }
            _ => {
                if let Some(value) = apply_node(node, &values, n) {
                    values[id] = value;
                }
            }
        }
        id += 1;
    }
    Ok(values)
}

/// Whether what the axiom says is so: for an axiom that the execution keeps it, for a flag that it is raised.
pub fn holds<M: Matrix>(axiom: &Axiom, value: &Value<M>) -> bool {
    let plain = match (axiom.kind, value) {
        (AxiomKind::Empty, value) => value.is_empty(),
        (AxiomKind::Acyclic, Value::Relation(relation)) => relation.is_acyclic(),
        (AxiomKind::Irreflexive, Value::Relation(relation)) => relation.is_irreflexive(),
        (AxiomKind::Acyclic | AxiomKind::Irreflexive, Value::Set(set)) => set.is_empty(),
    };
    plain != axiom.negated
}
