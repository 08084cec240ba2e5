//! Specializes a plan to one kind of program: folds base sets and relations with known values and removes
//! dead nodes.

use super::graph::ExpressionGraph;
use super::layout::{RawGroup, lay_out_plan};
use super::plan::{Base, CompiledModel, Definition, GroupId, Node, NodeId, NodeKind};
use super::vocabulary::{ClassFamilies, Vocabulary};

/// Static knowledge about a base in all programs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBase<'a> {
    /// Nothing.
    Nothing,
    /// It has no members.
    Empty,
    /// It is the base relation of this name.
    Same(&'a str),
}

/// The plan with the same axioms, flags and sizes on every program for which `known` is true, without definitions and
/// labels. Axioms and flags that no such program can break or raise are left out.
pub(crate) fn specialize_plan(
    plan: &CompiledModel,
    vocabulary: &Vocabulary,
    families: &ClassFamilies,
    known: &dyn Fn(&str, Base) -> KnownBase<'static>,
) -> CompiledModel {
    let mut graph = ExpressionGraph::new(vocabulary, families);
    let mut places: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    let mut groups: Vec<RawGroup> = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        graph.statement = plan.origins[index];
        let starting = plan.groups.iter().find(|group| group.nodes.start as usize == index);
        if let Some(group) = starting {
            let created = graph.nodes.len() as u32;
            let number = GroupId(groups.len() as u32);
            let members = (0..group.bodies.len())
                .map(|member| graph.recursive_node(number, member as u32, plan.nodes[index + member].kind()))
                .collect();
            groups.push(RawGroup { created, members, bodies: Vec::new() });
        }
        // The constructors of the graph simplify, so that known bases fold into their users.
        let place = place(&mut graph, plan, *node, &places, &groups, known);
        places.push(place);
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1)
            && let Some(raw) = groups.last_mut()
        {
            raw.bodies = group.bodies.iter().map(|body| places[body.to_index()]).collect();
        }
    }
    let mut axioms = plan.axioms.clone();
    for axiom in &mut axioms {
        axiom.node = places[axiom.node.to_index()];
    }
    axioms.retain(|axiom| {
        // An empty node satisfies an emptiness axiom and never raises a non-emptiness flag.
        let empty = matches!(graph.node(axiom.node), Node::Empty | Node::EmptySet);
        !(empty && axiom.flag == axiom.negated)
    });
    // The layout keeps the nodes that axioms and definitions need.
    let counted = plan.sizes.iter().map(|size| Definition {
        name: String::new(),
        node: places[size.node.to_index()],
        statement: plan.origins[size.node.to_index()],
    });
    let draft = CompiledModel {
        axioms,
        definitions: counted.collect(),
        sources: plan.sources.clone(),
        ..CompiledModel::default()
    };
    let mut special = lay_out_plan(graph, &groups, draft);
    special.sizes = plan.sizes.clone();
    for (size, definition) in special.sizes.iter_mut().zip(std::mem::take(&mut special.definitions)) {
        size.node = definition.node;
    }
    special
}

fn place(
    graph: &mut ExpressionGraph<'_>,
    plan: &CompiledModel,
    node: Node,
    places: &[NodeId],
    groups: &[RawGroup],
    known: &dyn Fn(&str, Base) -> KnownBase<'static>,
) -> NodeId {
    let at = |id: NodeId| places[id.to_index()];
    match node {
        Node::BaseSet(base) | Node::BaseRelation(base) => {
            let name = plan.name_text(base.name);
            let kind = node.kind();
            match (known(name, base), kind) {
                (KnownBase::Empty, NodeKind::Set) => graph.empty_set(),
                (KnownBase::Empty, NodeKind::Relation) => graph.empty_relation(),
                (KnownBase::Same(other), _) => graph.leaf_node(other, kind, None),
                (KnownBase::Nothing, _) => graph.leaf_node(name, kind, base.mask),
            }
        }
        // The group that is being rebuilt is the last one.
        Node::Recursive { index, .. } => {
            groups.last().map_or_else(|| graph.empty_relation(), |group| group.members[index as usize])
        }
        Node::EmptySet => graph.empty_set(),
        Node::Universe => graph.universe_set(),
        Node::Empty => graph.empty_relation(),
        Node::Identity => graph.identity_relation(),
        Node::Full => graph.full_relation(),
        Node::SetUnion(a, b) => graph.set_union(at(a), at(b)),
        Node::SetIntersection(a, b) => graph.set_intersection(at(a), at(b)),
        Node::SetDifference(a, b) => graph.set_difference(at(a), at(b)),
        Node::SetComplement(a) => graph.set_complement(at(a)),
        Node::Domain(a) => graph.domain_of(at(a)),
        Node::Range(a) => graph.range_of(at(a)),
        Node::IdentityOn(a) => graph.identity_on(at(a)),
        Node::Product(a, b) => graph.cartesian_product(at(a), at(b)),
        Node::Union(a, b) => graph.relation_union(at(a), at(b)),
        Node::Intersection(a, b) => graph.relation_intersection(at(a), at(b)),
        Node::Difference(a, b) => graph.relation_difference(at(a), at(b)),
        Node::Complement(a) => graph.relation_complement(at(a)),
        Node::Sequence(a, b) => graph.compose_relations(at(a), at(b)),
        Node::Inverse(a) => graph.inverse_of(at(a)),
        Node::Plus(a) => graph.transitive_closure(at(a)),
        Node::Star(a) => graph.reflexive_transitive_closure(at(a)),
        Node::Optional(a) => graph.reflexive_closure(at(a)),
        Node::Immediate(a) => graph.immediate_relation(at(a)),
        Node::RestrictRows(a, b) => graph.restrict_rows(at(a), at(b)),
        Node::RestrictColumns(a, b) => graph.restrict_columns(at(a), at(b)),
    }
}
