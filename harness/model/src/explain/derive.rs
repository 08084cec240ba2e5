//! Derives the reason for a pair of a relation: the satisfied alternatives of the model's text, down to
//! primitive relations.

use std::collections::HashMap;

use crate::cat::source::text_of;
use crate::cat::{CatSpan, CatValue, CompiledModel, Definition, NodeId, NodeLabel, PlanNode, StatementId};
use crate::clauses::file_name;
use crate::explain::{EventId, ExplainedEdge, StatementLocation};
use crate::matrix::{Bits, Matrix};

/// Bound on nested definitions.
const MAX_DEPTH: usize = 5;
/// Bound on unfoldings of a recursive definition.
const MAX_RECURSIONS: usize = 16;
/// Cost of an incomplete derivation.
const INCOMPLETE_COST: u32 = 1 << 16;
/// Bound on the names along a chain of choices.
const MAX_CHOICE_CHAIN: usize = 64;
/// Base relations that only compare attributes of two events, and therefore explain nothing by themselves.
const FILTER_RELATIONS: [&str; 8] = ["loc", "vloc", "sref", "int", "ext", "ssg", "swg", "sqf"];

struct NamedNode<'a> {
    /// `None` for a part of a union that only carries a citation.
    name: Option<&'a str>,
    statement: StatementId,
    span: CatSpan,
    clauses: &'a [String],
}

/// A pair of a node.
struct OperandPair {
    node: NodeId,
    from: usize,
    to: usize,
}

/// Derives pairs of one evaluated execution.
pub(super) struct EdgeDeriver<'a, M: Matrix> {
    plan: &'a CompiledModel,
    values: &'a [CatValue<M>],
    node_names: HashMap<NodeId, NamedNode<'a>>,
    costs: HashMap<(NodeId, usize, usize), u32>,
    recursions: usize,
    /// Only names that are defined before this statement are used: a later one may be equal by coincidence.
    visible_before: StatementId,
}

impl<'a, M: Matrix> EdgeDeriver<'a, M> {
    pub(super) fn new(plan: &'a CompiledModel, values: &'a [CatValue<M>]) -> Self {
        let mut named = HashMap::new();
        for Definition { name, node, statement } in &plan.definitions {
            let statement_of = plan.statement_at(*statement);
            // The first definition of a node names it. Later ones may be equal by coincidence.
            named.entry(*node).or_insert(NamedNode {
                name: Some(name.as_str()),
                statement: *statement,
                span: statement_of.span,
                clauses: &statement_of.clauses,
            });
        }
        // A node that both a function and a part of a statement denote gets the name of the
        // function.
        for functions in [true, false] {
            for NodeLabel { node, function, statement, span, clauses } in
                plan.labels.iter().filter(|label| label.function.is_some() == functions)
            {
                let new =
                    NamedNode { name: function.as_deref(), statement: *statement, span: *span, clauses };
                named.entry(*node).or_insert(new);
            }
        }
        EdgeDeriver {
            plan,
            values,
            node_names: named,
            costs: HashMap::new(),
            recursions: 0,
            visible_before: StatementId(u32::MAX),
        }
    }

    /// Returns the name of a node that is visible from the current statement.
    fn visible_name(&self, node: NodeId) -> Option<&NamedNode<'a>> {
        self.node_names.get(&node).filter(|named| {
            named.statement < self.visible_before
                || (named.name.is_none() && named.statement == self.visible_before)
        })
    }

    fn relation_at(&self, node: NodeId) -> Option<&'a M> {
        self.values.get(node.to_index()).and_then(CatValue::as_relation)
    }

    fn has_pair(&self, node: NodeId, from: usize, to: usize) -> bool {
        self.relation_at(node).is_some_and(|relation| relation.contains(from, to))
    }

    /// Returns the number of base pairs in the shortest known derivation; 0 if the pair only satisfies
    /// filters.
    pub(super) fn derivation_cost(&mut self, node: NodeId, from: usize, to: usize) -> u32 {
        if let Some(cached) = self.costs.get(&(node, from, to)) {
            return *cached;
        }
        let cost = match self.plan.node_at(node) {
            PlanNode::BaseRelation(base) => {
                u32::from(from != to && !FILTER_RELATIONS.contains(&self.plan.name_text(base.name)))
            }
            // Not stored: the cost is unknown, not large, and may be found from elsewhere.
            PlanNode::Recursive { .. } if self.recursions >= MAX_RECURSIONS => return INCOMPLETE_COST,
            of => {
                let unfolds = usize::from(matches!(of, PlanNode::Recursive { .. }));
                self.recursions += unfolds;
                let operands = self.justifying_pairs(node, from, to).into_iter();
                let cost = operands
                    .map(|pair| self.derivation_cost(pair.node, pair.from, pair.to))
                    .fold(0, u32::saturating_add);
                self.recursions -= unfolds;
                cost
            }
        };
        self.costs.insert((node, from, to), cost);
        cost
    }

    /// Returns the pairs of operands that a pair of a node follows from: those of the cheapest derivation.
    fn justifying_pairs(&mut self, node: NodeId, from: usize, to: usize) -> Vec<OperandPair> {
        let pair = |node, from, to| OperandPair { node, from, to };
        let same = |node| vec![pair(node, from, to)];
        match self.plan.node_at(node) {
            PlanNode::Union(..) => self.cheapest_alternative(node, from, to).map_or(Vec::new(), same),
            PlanNode::Intersection(_, left, right) => vec![pair(left, from, to), pair(right, from, to)],
            PlanNode::Star(_) | PlanNode::Optional(_) if from == to => Vec::new(),
            PlanNode::Difference(_, inner, _)
            | PlanNode::RestrictRows(_, inner)
            | PlanNode::RestrictColumns(inner, _)
            | PlanNode::Immediate(inner)
            | PlanNode::Optional(inner) => same(inner),
            PlanNode::Inverse(inner) => vec![pair(inner, to, from)],
            PlanNode::Sequence(left, right) => match self.cheapest_middle(left, right, from, to) {
                Some(middle) => vec![pair(left, from, middle), pair(right, middle, to)],
                None => Vec::new(),
            },
            PlanNode::Plus(inner) | PlanNode::Star(inner) => {
                let path = self.relation_at(inner).and_then(|relation| relation.shortest_path(from, to));
                path.unwrap_or_default().windows(2).map(|step| pair(inner, step[0], step[1])).collect()
            }
            PlanNode::Recursive { group, index, .. } => {
                let bodies = self.plan.groups.get(group.0 as usize).map(|group| &group.bodies);
                bodies.and_then(|bodies| bodies.get(index as usize).copied()).map_or(Vec::new(), same)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the cheapest satisfied alternative of a union; nested unions are flattened.
    fn cheapest_alternative(&mut self, node: NodeId, from: usize, to: usize) -> Option<NodeId> {
        let mut worklist = vec![node];
        let mut parts = Vec::new();
        while let Some(next) = worklist.pop() {
            match self.plan.node_at(next) {
                // Unions are binary nodes. Nested anonymous ones are flattened, so that all
                // alternatives compete.
                PlanNode::Union(_, left, right) if next == node || self.visible_name(next).is_none() => {
                    worklist.extend([right, left]);
                }
                _ if self.has_pair(next, from, to) => parts.push(next),
                _ => {}
            }
        }
        // Prefer a name to an anonymous expression of equal length.
        parts.sort();
        let is_anonymous = |part: &NodeId| self.visible_name(*part).is_none();
        let anonymous: Vec<bool> = parts.iter().map(is_anonymous).collect();
        let costs: Vec<u32> = parts.iter().map(|part| self.derivation_cost(*part, from, to)).collect();
        (0..parts.len()).min_by_key(|part| (costs[*part], anonymous[*part])).map(|part| parts[part])
    }

    /// Returns the event through which a composition is cheapest.
    fn cheapest_middle(&mut self, left: NodeId, right: NodeId, from: usize, to: usize) -> Option<usize> {
        let middles: Vec<usize> = self
            .relation_at(left)?
            .row(from)
            .iter()
            .filter(|middle| self.has_pair(right, *middle, to))
            .collect();
        middles.into_iter().min_by_key(|middle| {
            self.derivation_cost(left, from, *middle).saturating_add(self.derivation_cost(right, *middle, to))
        })
    }

    /// The pair as edges from one event to the other, or as several edges that hold together.
    pub(super) fn derive_edges(&mut self, node: NodeId, from: usize, to: usize) -> Vec<ExplainedEdge> {
        self.build_edges(node, from, to, MAX_DEPTH)
    }

    /// The edge of a named relation.
    pub(super) fn derive_edge(&mut self, node: NodeId, name: &str, from: usize, to: usize) -> ExplainedEdge {
        match self.build_edges(node, from, to, MAX_DEPTH).pop() {
            Some(edge) if edge.relation == name => edge,
            _ => ExplainedEdge { relation: name.to_owned(), ..leaf_edge("", from, to) },
        }
    }

    fn build_edges(&mut self, node: NodeId, from: usize, to: usize, depth: usize) -> Vec<ExplainedEdge> {
        if self.derivation_cost(node, from, to) == 0 {
            return Vec::new();
        }
        if let PlanNode::BaseRelation(base) = self.plan.node_at(node) {
            return vec![leaf_edge(self.plan.name_text(base.name), from, to)];
        }
        let Some(statement) = self.visible_name(node).map(|named| named.statement) else {
            return self.derive_operands(node, from, to, depth);
        };
        // Inside a definition, only names from before it may appear.
        let outer_limit = std::mem::replace(&mut self.visible_before, statement);
        let mut edge = leaf_edge("", from, to);
        let target = self.unwrap_single_operands(node, from, to, &mut edge);
        if depth > 0 && !matches!(self.plan.node_at(target), PlanNode::BaseRelation(_)) {
            let inner_limit = self.visible_name(target).map_or(statement, |named| named.statement);
            self.visible_before = inner_limit;
            edge.premises = self.derive_operands(target, from, to, depth - 1);
        }
        self.visible_before = outer_limit;
        vec![edge]
    }

    /// Labels the edge of a named node with the node and its satisfied alternative, and returns that node.
    fn unwrap_single_operands(
        &mut self,
        node: NodeId,
        from: usize,
        to: usize,
        edge: &mut ExplainedEdge,
    ) -> NodeId {
        if let Some(named) = self.node_names.get(&node) {
            edge.relation = self.name_text(named);
            edge.clauses = named.clauses.to_vec();
            edge.statement = Some(self.statement_location(named.statement));
        }
        let mut target = node;
        let mut cited = false;
        for _ in 0..MAX_CHOICE_CHAIN {
            let Some(next) = self.sole_operand(target, from, to) else { break };
            if let PlanNode::BaseRelation(base) = self.plan.node_at(next) {
                if !cited {
                    edge.via = Some(self.plan.name_text(base.name).to_owned());
                    target = next;
                }
                break;
            }
            let Some(named) = self.visible_name(next) else {
                target = next;
                continue;
            };
            // A separately cited node is more informative than the names inside it, except in a function.
            let is_function =
                self.plan.labels.iter().any(|label| label.node == next && label.function.is_some());
            if cited && named.name.is_some() && !is_function {
                break;
            }
            edge.via = Some(self.name_text(named));
            if !named.clauses.is_empty() {
                edge.clauses = named.clauses.to_vec();
                edge.statement = Some(self.statement_location(named.statement));
            }
            cited = named.name.is_none();
            target = next;
            if !cited {
                break;
            }
        }
        target
    }

    /// Returns the single operand that justifies the pair, if the node is a choice or a filter.
    fn sole_operand(&mut self, node: NodeId, from: usize, to: usize) -> Option<NodeId> {
        match self.plan.node_at(node) {
            PlanNode::Intersection(_, left, right) => {
                // A part of cost 0 is only a filter.
                match (self.derivation_cost(left, from, to), self.derivation_cost(right, from, to)) {
                    (0, _) => Some(right),
                    (_, 0) => Some(left),
                    _ => None,
                }
            }
            PlanNode::Inverse(_) | PlanNode::Sequence(..) | PlanNode::Plus(_) | PlanNode::Star(_) => None,
            _ => self.justifying_pairs(node, from, to).first().map(|pair| pair.node),
        }
    }

    /// Derives the operands of a node's pair.
    fn derive_operands(&mut self, node: NodeId, from: usize, to: usize, depth: usize) -> Vec<ExplainedEdge> {
        let depth = match self.plan.node_at(node) {
            PlanNode::BaseRelation(base) => {
                return vec![leaf_edge(self.plan.name_text(base.name), from, to)];
            }
            PlanNode::Recursive { .. } if depth == 0 => return Vec::new(),
            PlanNode::Recursive { .. } => depth - 1,
            _ => depth,
        };
        let operands = self.justifying_pairs(node, from, to).into_iter();
        operands.flat_map(|pair| self.build_edges(pair.node, pair.from, pair.to, depth)).collect()
    }

    fn name_text(&self, named: &NamedNode<'a>) -> String {
        match named.name {
            Some(name) => name.to_owned(),
            None => {
                let text = text_of(named.span, &self.plan.sources);
                match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                    Some(inner) if is_balanced(inner) => inner.to_owned(),
                    _ => text,
                }
            }
        }
    }

    pub(super) fn statement_location(&self, statement: StatementId) -> StatementLocation {
        location_of_statement(self.plan, statement)
    }
}

/// Returns true if every parenthesis is closed after it was opened.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0_usize;
    for c in text.chars() {
        match (c, depth) {
            ('(', _) => depth += 1,
            (')', 0) => return false,
            (')', _) => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

pub(super) fn location_of_statement(plan: &CompiledModel, statement: StatementId) -> StatementLocation {
    let span = plan.statement_at(statement).span;
    let file = plan.sources.get(usize::from(span.source.0)).map_or("", |source| &source.name);
    StatementLocation { file: file_name(file), line: span.line }
}

pub(super) fn event_id(index: usize) -> EventId {
    EventId(u16::try_from(index).unwrap_or(u16::MAX))
}

pub(super) fn leaf_edge(relation: &str, from: usize, to: usize) -> ExplainedEdge {
    ExplainedEdge {
        from: event_id(from),
        to: event_id(to),
        relation: relation.to_owned(),
        via: None,
        statement: None,
        clauses: Vec::new(),
        premises: Vec::new(),
    }
}
