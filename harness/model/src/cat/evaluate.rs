//! Evaluates a plan on one concrete execution.

use super::plan::{
    Axiom, AxiomKind, BaseReference, CompiledModel, NodeId, NodeKind, PlanNode, RecursionGroup,
};
use crate::matrix::{Bits, Matrix};

/// The value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatValue<M: Matrix> {
    Set(M::Set),
    Relation(M),
}

impl<M: Matrix> CatValue<M> {
    /// The empty set or relation over n events.
    pub fn new_empty(kind: NodeKind, n: usize) -> Self {
        match kind {
            NodeKind::Set => CatValue::Set(M::Set::empty()),
            NodeKind::Relation => CatValue::Relation(M::empty(n)),
        }
    }

    /// Returns true if it has no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            CatValue::Set(set) => set.is_empty(),
            CatValue::Relation(relation) => relation.is_empty(),
        }
    }

    /// The set; `None` for a relation.
    #[inline]
    pub fn as_set(&self) -> Option<M::Set> {
        match self {
            CatValue::Set(set) => Some(*set),
            CatValue::Relation(_) => None,
        }
    }

    /// Returns the pairs for which `keep` is true; the members of a set are pairs of an event with itself.
    pub(crate) fn filter_pairs(&self, n: usize, keep: impl Fn(usize, usize) -> bool) -> CatValue<M> {
        match self {
            CatValue::Set(set) => {
                let mut kept = M::Set::empty();
                set.iter().filter(|event| keep(*event, *event)).for_each(|event| kept.insert(event));
                CatValue::Set(kept)
            }
            CatValue::Relation(relation) => {
                CatValue::Relation(M::from_pairs(n, relation.pairs().filter(|(from, to)| keep(*from, *to))))
            }
        }
    }

    /// The relation; `None` for a set.
    #[inline]
    pub fn as_relation(&self) -> Option<&M> {
        match self {
            CatValue::Set(_) => None,
            CatValue::Relation(relation) => Some(relation),
        }
    }
}

/// Supplies the base sets and relations of one execution.
pub trait BaseProvider<M: Matrix> {
    /// The set of that name (and, if the set is indexed by storage classes, of that mask); `None` if it does not exist.
    fn base_set(&self, name: &str, mask: Option<u8>) -> Option<M::Set>;

    /// The relation of that name; `None` if it does not exist.
    fn base_relation(&self, name: &str, mask: Option<u8>) -> Option<M>;
}

/// A base set or relation that the plan uses and its provider lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("evaluate the model: no base set or relation `{name}`")]
pub struct MissingBase {
    pub name: String,
}

/// Applies one operation to the values of earlier nodes, over n events.
///
/// `None` for base sets and relations and for members of recursive groups, which are not computed from operands, and
/// if an operand is missing from `values` or of the wrong kind (a plan made by [`compile`](super::compile) never
/// is).
#[inline]
pub fn apply_node<M: Matrix>(node: PlanNode, values: &[CatValue<M>], n: usize) -> Option<CatValue<M>> {
    apply_node_with(node, |id| values.get(id.to_index()), n)
}

/// [`apply_node`] with the values of earlier nodes given by a function.
#[inline(always)]
pub(crate) fn apply_node_with<'v, M: Matrix>(
    node: PlanNode,
    value: impl Fn(NodeId) -> Option<&'v CatValue<M>>,
    n: usize,
) -> Option<CatValue<M>> {
    use NodeKind::{Relation, Set};
    let set = |id: NodeId| value(id).and_then(CatValue::as_set);
    let relation = |id: NodeId| value(id).and_then(CatValue::as_relation);
    let value = match node {
        PlanNode::BaseSet(_) | PlanNode::BaseRelation(_) | PlanNode::Recursive { .. } => return None,
        PlanNode::Empty(kind) => CatValue::new_empty(kind, n),
        PlanNode::Full(Set) => CatValue::Set(M::Set::universe(n)),
        PlanNode::Full(Relation) => CatValue::Relation(M::full(n)),
        PlanNode::Union(Set, a, b) => CatValue::Set(set(a)?.union(set(b)?)),
        PlanNode::Union(Relation, a, b) => CatValue::Relation(relation(a)?.union(relation(b)?)),
        PlanNode::Intersection(Set, a, b) => CatValue::Set(set(a)?.intersection(set(b)?)),
        PlanNode::Intersection(Relation, a, b) => CatValue::Relation(relation(a)?.intersection(relation(b)?)),
        PlanNode::Difference(Set, a, b) => CatValue::Set(set(a)?.difference(set(b)?)),
        PlanNode::Difference(Relation, a, b) => CatValue::Relation(relation(a)?.difference(relation(b)?)),
        PlanNode::Complement(Set, a) => CatValue::Set(set(a)?.complement(n)),
        PlanNode::Complement(Relation, a) => CatValue::Relation(relation(a)?.complement(n)),
        PlanNode::Domain(a) => CatValue::Set(relation(a)?.domain()),
        PlanNode::Range(a) => CatValue::Set(relation(a)?.range()),
        PlanNode::Identity => CatValue::Relation(M::identity(n)),
        PlanNode::IdentityOn(a) => CatValue::Relation(M::identity_on(n, set(a)?)),
        PlanNode::Product(a, b) => CatValue::Relation(M::product(n, set(a)?, set(b)?)),
        PlanNode::Sequence(a, b) => CatValue::Relation(relation(a)?.compose(relation(b)?)),
        PlanNode::Inverse(a) => CatValue::Relation(relation(a)?.transpose()),
        PlanNode::Plus(a) => CatValue::Relation(relation(a)?.plus()),
        PlanNode::Star(a) => CatValue::Relation(relation(a)?.star(n)),
        PlanNode::Optional(a) => CatValue::Relation(relation(a)?.optional(n)),
        PlanNode::Immediate(a) => CatValue::Relation(relation(a)?.immediate()),
        PlanNode::RestrictRows(s, r) => CatValue::Relation(relation(r)?.restrict_rows(set(s)?)),
        PlanNode::RestrictColumns(r, s) => CatValue::Relation(relation(r)?.restrict_columns(set(s)?)),
    };
    Some(value)
}

/// Evaluates a recursive group to its least fixpoint. The values of all its operands must be in `values`.
///
/// Monotone bodies over finite sets grow at most once per pair, so the iteration terminates.
pub fn evaluate_group<M: Matrix>(
    plan: &CompiledModel,
    group: &RecursionGroup,
    values: &mut [CatValue<M>],
    n: usize,
) {
    let start = group.nodes.start as usize;
    let inner = start + group.bodies.len()..group.nodes.end as usize;
    for (value, node) in values.iter_mut().zip(&plan.nodes).take(inner.start).skip(start) {
        // The iteration starts from empty members and ends at the least fixpoint.
        *value = CatValue::new_empty(node.kind(), n);
    }
    loop {
        for id in inner.clone() {
            if let Some(value) = apply_node(plan.nodes[id], values, n) {
                values[id] = value;
            }
        }
        let mut changed = false;
        for (member, body) in (start..).zip(&group.bodies) {
            if values[member] != values[body.to_index()] {
                values[member] = values[body.to_index()].clone();
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
/// If the provider lacks the base.
pub fn evaluate_base<M: Matrix>(
    plan: &CompiledModel,
    base: BaseReference,
    kind: NodeKind,
    provider: &impl BaseProvider<M>,
) -> Result<CatValue<M>, MissingBase> {
    let name = plan.name_text(base.name);
    match kind {
        NodeKind::Set => provider.base_set(name, base.mask).map(CatValue::Set),
        NodeKind::Relation => provider.base_relation(name, base.mask).map(CatValue::Relation),
    }
    .ok_or_else(|| MissingBase { name: name.to_owned() })
}

/// Evaluates every node of the plan on an execution of n events. The result is in node order.
///
/// # Errors
/// If the provider lacks a base that the plan uses.
pub fn evaluate_model<M: Matrix>(
    plan: &CompiledModel,
    provider: &impl BaseProvider<M>,
    n: usize,
) -> Result<Vec<CatValue<M>>, MissingBase> {
    let mut values: Vec<CatValue<M>> =
        plan.nodes.iter().map(|node| CatValue::new_empty(node.kind(), n)).collect();
    let mut groups = plan.groups.iter().peekable();
    let mut id = 0;
    while let Some(&node) = plan.nodes.get(id) {
        if let Some(group) = groups.next_if(|group| group.nodes.start as usize == id) {
            evaluate_group(plan, group, &mut values, n);
            id = group.nodes.end as usize;
            continue;
        }
        match node {
            PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
                values[id] = evaluate_base(plan, base, node.kind(), provider)?;
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

/// Returns true if an axiom is satisfied, or a flag is raised.
pub fn axiom_holds<M: Matrix>(axiom: &Axiom, value: &CatValue<M>) -> bool {
    let holds = match (axiom.kind, value) {
        (AxiomKind::Empty, value) => value.is_empty(),
        (AxiomKind::Acyclic, CatValue::Relation(relation)) => relation.is_acyclic(),
        (AxiomKind::Irreflexive, CatValue::Relation(relation)) => relation.is_irreflexive(),
        // A set is used as its identity relation.
        (AxiomKind::Acyclic | AxiomKind::Irreflexive, CatValue::Set(set)) => set.is_empty(),
    };
    holds != axiom.negated
}
