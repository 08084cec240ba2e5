//! A plan cut down to what the axioms need of one kind of program, once it is known which base sets and relations are
//! empty in it.

use super::graph::Graph;
use super::layout::{RawGroup, lay_out};
use super::plan::{Base, CompiledModel, Definition, GroupId, Node, NodeId, NodeKind};
use super::vocabulary::{Families, Vocabulary};

/// What is known of a base set or relation in all programs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    /// Nothing.
    Nothing,
    /// It has no members.
    Empty,
    /// It is the base relation of this name.
    Same(&'a str),
}

/// The plan with the same axioms, flags and sizes on every program for which `known` is true, without definitions and
/// labels. Axioms and flags that no such program can break or raise are left out.
pub(crate) fn specialize(
    plan: &CompiledModel,
    vocabulary: &Vocabulary,
    families: &Families,
    known: &dyn Fn(&str, Base) -> Known<'static>,
) -> CompiledModel {
    let mut graph = Graph::new(vocabulary, families);
    let mut places: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    let mut groups: Vec<RawGroup> = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        graph.statement = plan.origins[index];
        let starting = plan.groups.iter().find(|group| group.nodes.start as usize == index);
        if let Some(group) = starting {
            let created = graph.nodes.len() as u32;
            let number = GroupId(groups.len() as u32);
            let members = (0..group.bodies.len())
                .map(|member| graph.recursive(number, member as u32, plan.nodes[index + member].kind()))
                .collect();
            groups.push(RawGroup { created, members, bodies: Vec::new() });
        }
        let place = place(&mut graph, plan, *node, &places, &groups, known);
        places.push(place);
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1)
            && let Some(raw) = groups.last_mut()
        {
            raw.bodies = group.bodies.iter().map(|body| places[body.index()]).collect();
        }
    }
    let mut axioms = plan.axioms.clone();
    for axiom in &mut axioms {
        axiom.node = places[axiom.node.index()];
    }
    axioms.retain(|axiom| {
        // What is always empty breaks no axiom that asks for it, and raises no flag that asks for the contrary.
        let empty = matches!(graph.node(axiom.node), Node::Empty | Node::EmptySet);
        !(empty && axiom.flag == axiom.negated)
    });
    // The layout keeps what axioms and definitions need.
    let counted = plan.sizes.iter().map(|size| Definition {
        name: String::new(),
        node: places[size.node.index()],
        statement: plan.origins[size.node.index()],
    });
    let draft = CompiledModel {
        axioms,
        definitions: counted.collect(),
        sources: plan.sources.clone(),
        ..CompiledModel::default()
    };
    let mut special = lay_out(graph, &groups, draft);
    special.sizes = plan.sizes.clone();
    for (size, definition) in special.sizes.iter_mut().zip(std::mem::take(&mut special.definitions)) {
        size.node = definition.node;
    }
    special
}

fn place(
    graph: &mut Graph<'_>,
    plan: &CompiledModel,
    node: Node,
    places: &[NodeId],
    groups: &[RawGroup],
    known: &dyn Fn(&str, Base) -> Known<'static>,
) -> NodeId {
    let at = |id: NodeId| places[id.index()];
    match node {
        Node::BaseSet(base) | Node::BaseRelation(base) => {
            let name = plan.name(base.name);
            let kind = node.kind();
            match (known(name, base), kind) {
                (Known::Empty, NodeKind::Set) => graph.empty_set(),
                (Known::Empty, NodeKind::Relation) => graph.empty(),
                (Known::Same(other), _) => graph.leaf(other, kind, None),
                (Known::Nothing, _) => graph.leaf(name, kind, base.mask),
            }
        }
        Node::Recursive { index, .. } => {
            groups.last().map_or_else(|| graph.empty(), |group| group.members[index as usize])
        }
        Node::EmptySet => graph.empty_set(),
        Node::Universe => graph.universe(),
        Node::Empty => graph.empty(),
        Node::Identity => graph.identity(),
        Node::Full => graph.full(),
        Node::SetUnion(a, b) => graph.set_union(at(a), at(b)),
        Node::SetIntersection(a, b) => graph.set_intersection(at(a), at(b)),
        Node::SetDifference(a, b) => graph.set_difference(at(a), at(b)),
        Node::SetComplement(a) => graph.set_complement(at(a)),
        Node::Domain(a) => graph.domain(at(a)),
        Node::Range(a) => graph.range(at(a)),
        Node::IdentityOn(a) => graph.identity_on(at(a)),
        Node::Product(a, b) => graph.product(at(a), at(b)),
        Node::Union(a, b) => graph.union(at(a), at(b)),
        Node::Intersection(a, b) => graph.intersection(at(a), at(b)),
        Node::Difference(a, b) => graph.difference(at(a), at(b)),
        Node::Complement(a) => graph.complement(at(a)),
        Node::Sequence(a, b) => graph.sequence(at(a), at(b)),
        Node::Inverse(a) => graph.inverse(at(a)),
        Node::Plus(a) => graph.plus(at(a)),
        Node::Star(a) => graph.star(at(a)),
        Node::Optional(a) => graph.optional(at(a)),
        Node::Immediate(a) => graph.immediate(at(a)),
        Node::RestrictRows(a, b) => graph.restrict_rows(at(a), at(b)),
        Node::RestrictColumns(a, b) => graph.restrict_columns(at(a), at(b)),
    }
}
