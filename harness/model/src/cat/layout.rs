//! Orders the nodes of a plan: removes dead nodes and makes recursive groups contiguous.

use super::graph::ExpressionGraph;
use super::plan::{CompiledModel, NodeId, PlanNode, RecursionGroup};

/// A recursive group before layout: its nodes are interleaved with others that it uses.
pub(crate) struct RawGroup {
    /// The number of nodes before its first member.
    pub(crate) first_node: u32,
    pub(crate) members: Vec<NodeId>,
    pub(crate) bodies: Vec<NodeId>,
}

/// Emits the nodes and groups into `plan` and renumbers the references of its axioms and definitions.
pub(crate) fn layout_plan(
    graph: ExpressionGraph<'_>,
    groups: &[RawGroup],
    mut plan: CompiledModel,
) -> CompiledModel {
    let used = used_nodes(&graph, groups, &plan);
    let mut layout =
        PlanLayout { graph: &graph, new_ids: vec![None; graph.nodes.len()], plan: CompiledModel::default() };
    let mut next = 0;
    for group in groups {
        if !group.members.iter().any(|member| used[member.to_index()]) {
            // The group is dead; the loop below removes its nodes one by one.
            continue;
        }
        layout.emit_nodes(next..group.first_node as usize, &used, |_| true);
        // Some nodes between the members and the last body do not depend on the members. They are
        // emitted before the group.
        let end =
            group.bodies.iter().chain(&group.members).map(|node| node.to_index() + 1).max().unwrap_or(next);
        let inner = dependent_nodes(&graph, group, end);
        layout.emit_nodes(group.first_node as usize..end, &used, |index| {
            !inner[index - group.first_node as usize]
        });
        let start = layout.plan.nodes.len() as u32;
        layout.emit_nodes(group.first_node as usize..end, &used, |index| {
            inner[index - group.first_node as usize]
        });
        let range = start..layout.plan.nodes.len() as u32;
        let bodies = group.bodies.iter().map(|body| layout.map_node(*body)).collect();
        layout.plan.groups.push(RecursionGroup { nodes: range, bodies });
        next = end;
    }
    layout.emit_nodes(next..graph.nodes.len(), &used, |_| true);

    for axiom in &mut plan.axioms {
        axiom.node = layout.map_node(axiom.node);
    }
    for definition in &mut plan.definitions {
        definition.node = layout.map_node(definition.node);
    }
    // The label of a dead node is removed with it.
    plan.labels.retain_mut(|label| {
        let place = layout.new_ids.get(label.node.to_index()).copied().flatten();
        label.node = place.unwrap_or(label.node);
        place.is_some()
    });
    let CompiledModel { nodes, origins, groups, .. } = layout.plan;
    CompiledModel { nodes, origins, groups, names: graph.names, ..plan }
}

struct PlanLayout<'a> {
    graph: &'a ExpressionGraph<'a>,
    new_ids: Vec<Option<NodeId>>,
    plan: CompiledModel,
}

impl PlanLayout<'_> {
    /// Returns the new number of a live node.
    fn map_node(&self, node: NodeId) -> NodeId {
        self.new_ids.get(node.to_index()).copied().flatten().unwrap_or(node)
    }

    fn emit_nodes(
        &mut self,
        range: std::ops::Range<usize>,
        used: &[bool],
        is_selected: impl Fn(usize) -> bool,
    ) {
        for index in range {
            if !used[index] || self.new_ids[index].is_some() || !is_selected(index) {
                continue;
            }
            let node = match self.graph.nodes[index] {
                PlanNode::Recursive { index, node_kind: kind, .. } => {
                    // Removing dead groups renumbers the remaining ones.
                    let group = super::plan::GroupId(self.plan.groups.len() as u32);
                    PlanNode::Recursive { group, index, node_kind: kind }
                }
                node => node.map_operands(|operand| self.map_node(operand)),
            };
            self.new_ids[index] = Some(NodeId(self.plan.nodes.len() as u32));
            self.plan.nodes.push(node);
            self.plan.origins.push(self.graph.origins[index]);
        }
    }
}

/// Marks the nodes that an axiom or a definition uses; the members of a group are used together.
fn used_nodes(graph: &ExpressionGraph<'_>, groups: &[RawGroup], plan: &CompiledModel) -> Vec<bool> {
    let mut used = vec![false; graph.nodes.len()];
    let axioms = plan.axioms.iter().map(|axiom| axiom.node);
    let mut worklist: Vec<NodeId> =
        axioms.chain(plan.definitions.iter().map(|definition| definition.node)).collect();
    while let Some(id) = worklist.pop() {
        if std::mem::replace(&mut used[id.to_index()], true) {
            continue;
        }
        match graph.node(id) {
            PlanNode::Recursive { group, .. } => {
                if let Some(group) = groups.get(group.0 as usize) {
                    worklist.extend(group.members.iter().chain(&group.bodies));
                }
            }
            node => worklist.extend(node.operand_nodes()),
        }
    }
    used
}

/// Marks the nodes from the group's first member up to `end` that are members or are computed from
/// members.
fn dependent_nodes(graph: &ExpressionGraph<'_>, group: &RawGroup, end: usize) -> Vec<bool> {
    let start = group.first_node as usize;
    let mut dependent: Vec<bool> = Vec::with_capacity(end.saturating_sub(start));
    for index in start..end {
        let node = graph.nodes[index];
        let depends = group.members.contains(&NodeId(index as u32))
            || node
                .operand_nodes()
                .any(|operand| operand.to_index() >= start && dependent[operand.to_index() - start]);
        dependent.push(depends);
    }
    dependent
}
