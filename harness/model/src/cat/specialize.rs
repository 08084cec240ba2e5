//! Specializes a plan to one kind of program: folds base sets and relations with known values and removes
//! dead nodes.

use super::graph::ExpressionGraph;
use super::layout::{RawGroup, layout_plan};
use super::plan::{BaseReference, CompiledModel, Definition, GroupId, NodeId, PlanNode};
use super::vocabulary::{ClassFamilies, Vocabulary};

/// Static knowledge about a base in all programs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBase<'a> {
    /// Nothing.
    Unknown,
    /// It has no members.
    Empty,
    /// It is the base relation of this name.
    Alias(&'a str),
}

/// Returns a plan with equal axioms, flags and sizes on all programs of one kind, without definitions and
/// labels. Axioms and flags that no such program can break or raise are left out.
pub(crate) fn specialize_plan(
    plan: &CompiledModel,
    vocabulary: &Vocabulary,
    families: &ClassFamilies,
    base_knowledge: &dyn Fn(&str, BaseReference) -> KnownBase<'static>,
) -> CompiledModel {
    let mut graph = ExpressionGraph::new(vocabulary, families);
    let mut new_ids: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    let mut groups: Vec<RawGroup> = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        graph.statement = plan.origins[index];
        let starting_group = plan.groups.iter().find(|group| group.nodes.start as usize == index);
        if let Some(group) = starting_group {
            let created = graph.nodes.len() as u32;
            let number = GroupId(groups.len() as u32);
            let members = (0..group.bodies.len())
                .map(|member| {
                    let node_kind = plan.nodes[index + member].kind();
                    graph.intern_node(PlanNode::Recursive { group: number, index: member as u32, node_kind })
                })
                .collect();
            groups.push(RawGroup { first_node: created, members, bodies: Vec::new() });
        }
        // The constructors of the graph simplify, so that known bases fold into their users.
        let place = rebuild_node(&mut graph, plan, *node, &new_ids, &groups, base_knowledge);
        new_ids.push(place);
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1)
            && let Some(raw) = groups.last_mut()
        {
            raw.bodies = group.bodies.iter().map(|body| new_ids[body.to_index()]).collect();
        }
    }
    let mut axioms = plan.axioms.clone();
    for axiom in &mut axioms {
        axiom.node = new_ids[axiom.node.to_index()];
    }
    axioms.retain(|axiom| {
        // An empty node satisfies an emptiness axiom and never raises a non-emptiness flag.
        let empty = matches!(graph.node(axiom.node), PlanNode::Empty(_));
        !(empty && axiom.is_flag == axiom.negated)
    });
    // The layout keeps the nodes that axioms and definitions need.
    let counted_nodes = plan.size_constraints.iter().map(|size| Definition {
        name: String::new(),
        node: new_ids[size.node.to_index()],
        statement: plan.origins[size.node.to_index()],
    });
    let draft = CompiledModel {
        axioms,
        definitions: counted_nodes.collect(),
        sources: plan.sources.clone(),
        ..CompiledModel::default()
    };
    let mut specialized = layout_plan(graph, &groups, draft);
    specialized.size_constraints = plan.size_constraints.clone();
    for (size, definition) in
        specialized.size_constraints.iter_mut().zip(std::mem::take(&mut specialized.definitions))
    {
        size.node = definition.node;
    }
    specialized
}

fn rebuild_node(
    graph: &mut ExpressionGraph<'_>,
    plan: &CompiledModel,
    node: PlanNode,
    new_ids: &[NodeId],
    groups: &[RawGroup],
    base_knowledge: &dyn Fn(&str, BaseReference) -> KnownBase<'static>,
) -> NodeId {
    match node {
        PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
            let name = plan.name_text(base.name);
            let kind = node.kind();
            match (base_knowledge(name, base), kind) {
                (KnownBase::Empty, kind) => graph.intern_node(PlanNode::Empty(kind)),
                (KnownBase::Alias(other), _) => graph.leaf_node(other, kind, None),
                (KnownBase::Unknown, _) => graph.leaf_node(name, kind, base.mask),
            }
        }
        // The group that is being rebuilt is the last one.
        PlanNode::Recursive { index, .. } => groups.last().map_or_else(
            || graph.intern_node(PlanNode::Empty(node.kind())),
            |group| group.members[index as usize],
        ),
        node => graph.simplify(node.map_operands(|id| new_ids[id.to_index()])),
    }
}
