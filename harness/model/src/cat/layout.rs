//! The order of a plan's nodes: what nothing uses is dropped, and each recursive group stands together.

use super::graph::Graph;
use super::plan::{CompiledModel, Group, Node, NodeId};

/// A recursive group as it was built: its nodes lie among others that it uses.
pub(crate) struct RawGroup {
    /// The number of nodes before its first member.
    pub(crate) created: u32,
    pub(crate) members: Vec<NodeId>,
    pub(crate) bodies: Vec<NodeId>,
}

/// Adds the nodes and groups to `plan`, whose axioms and definitions speak of `graph`, and renumbers these.
pub(crate) fn lay_out(graph: Graph<'_>, groups: &[RawGroup], mut plan: CompiledModel) -> CompiledModel {
    let used = used_nodes(&graph, groups, &plan);
    let mut layout =
        Layout { graph: &graph, places: vec![None; graph.nodes.len()], plan: CompiledModel::default() };
    let mut next = 0;
    for group in groups {
        if !group.members.iter().any(|member| used[member.index()]) {
            // Nobody uses it; its nodes are dropped one by one below.
            continue;
        }
        layout.emit(next..group.created as usize, &used, |_| true);
        let end =
            group.bodies.iter().chain(&group.members).map(|node| node.index() + 1).max().unwrap_or(next);
        let inner = dependent_nodes(&graph, group, end);
        layout.emit(group.created as usize..end, &used, |index| !inner[index - group.created as usize]);
        let start = layout.plan.nodes.len() as u32;
        layout.emit(group.created as usize..end, &used, |index| inner[index - group.created as usize]);
        let range = start..layout.plan.nodes.len() as u32;
        let bodies = group.bodies.iter().map(|body| layout.place(*body)).collect();
        layout.plan.groups.push(Group { nodes: range, bodies });
        next = end;
    }
    layout.emit(next..graph.nodes.len(), &used, |_| true);

    for axiom in &mut plan.axioms {
        axiom.node = layout.place(axiom.node);
    }
    for definition in &mut plan.definitions {
        definition.node = layout.place(definition.node);
    }
    plan.labels.retain_mut(|label| {
        let place = layout.places.get(label.node.index()).copied().flatten();
        label.node = place.unwrap_or(label.node);
        place.is_some()
    });
    let CompiledModel { nodes, origins, groups, .. } = layout.plan;
    CompiledModel { nodes, origins, groups, names: graph.names, ..plan }
}

struct Layout<'a> {
    graph: &'a Graph<'a>,
    places: Vec<Option<NodeId>>,
    plan: CompiledModel,
}

impl Layout<'_> {
    /// The new number of a node; all nodes that are asked for have one.
    fn place(&self, node: NodeId) -> NodeId {
        self.places.get(node.index()).copied().flatten().unwrap_or(node)
    }

    fn emit(&mut self, range: std::ops::Range<usize>, used: &[bool], wanted: impl Fn(usize) -> bool) {
        for index in range {
            if !used[index] || self.places[index].is_some() || !wanted(index) {
                continue;
            }
            let node = match self.graph.nodes[index] {
                Node::Recursive { index, kind, .. } => {
                    // Groups that nothing uses are gone, so the others have new numbers.
                    let group = super::plan::GroupId(self.plan.groups.len() as u32);
                    Node::Recursive { group, index, kind }
                }
                node => node.map_operands(|operand| self.place(operand)),
            };
            self.places[index] = Some(NodeId(self.plan.nodes.len() as u32));
            self.plan.nodes.push(node);
            self.plan.origins.push(self.graph.origins[index]);
        }
    }
}

/// Whether each node is used by an axiom or a definition; the members of a group are used together.
fn used_nodes(graph: &Graph<'_>, groups: &[RawGroup], plan: &CompiledModel) -> Vec<bool> {
    let mut used = vec![false; graph.nodes.len()];
    let axioms = plan.axioms.iter().map(|axiom| axiom.node);
    let mut open: Vec<NodeId> =
        axioms.chain(plan.definitions.iter().map(|definition| definition.node)).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut used[id.index()], true) {
            continue;
        }
        match graph.node(id) {
            Node::Recursive { group, .. } => {
                if let Some(group) = groups.get(group.0 as usize) {
                    open.extend(group.members.iter().chain(&group.bodies));
                }
            }
            node => open.extend(node.operands()),
        }
    }
    used
}

/// Whether each node from the group's first member up to `end` is computed from its members, or is one.
fn dependent_nodes(graph: &Graph<'_>, group: &RawGroup, end: usize) -> Vec<bool> {
    let start = group.created as usize;
    let mut dependent: Vec<bool> = Vec::with_capacity(end.saturating_sub(start));
    for index in start..end {
        let node = graph.nodes[index];
        let depends = group.members.contains(&NodeId(index as u32))
            || node.operands().any(|operand| operand.index() >= start && dependent[operand.index() - start]);
        dependent.push(depends);
    }
    dependent
}
