//! Why a pair is in a relation: which alternatives of the model's text hold, down to what executions consist of.

use std::collections::HashMap;

use crate::cat::{CatSpan, CompiledModel, Definition, Node, NodeId, NodeLabel, StatementId, Value};
use crate::explain::{Edge, EventId, Place};
use crate::matrix::{Bits, Matrix};

/// How many levels of definitions are followed.
const DEPTH: usize = 5;
/// How often a recursive definition is followed through itself.
const RECURSIONS: usize = 16;
/// What a derivation costs that was not followed to its end.
const TOO_DEEP: u32 = 1 << 16;
/// How many names a choice is followed through.
const CHOICES: usize = 64;
/// Base relations that say what two events share, and so explain nothing by themselves.
const FILTERS: [&str; 8] = ["loc", "vloc", "sref", "int", "ext", "ssg", "swg", "sqf"];

/// How a node is named in the text.
struct Named<'a> {
    /// `None` for a part of a union that is no more than cited.
    name: Option<&'a str>,
    statement: StatementId,
    span: CatSpan,
    clauses: &'a [String],
}

/// Derives pairs of one evaluated execution.
pub(super) struct Deriver<'a, M: Matrix> {
    plan: &'a CompiledModel,
    values: &'a [Value<M>],
    named: HashMap<NodeId, Named<'a>>,
    costs: HashMap<(NodeId, usize, usize), u32>,
    recursions: usize,
    /// Only names that are defined before this statement are used: a later one may be an accident of equal text.
    limit: StatementId,
}

impl<'a, M: Matrix> Deriver<'a, M> {
    pub(super) fn new(plan: &'a CompiledModel, values: &'a [Value<M>]) -> Self {
        let mut named = HashMap::new();
        for Definition { name, node, statement } in &plan.definitions {
            let statement_of = plan.statement(*statement);
            named.entry(*node).or_insert(Named {
                name: Some(name.as_str()),
                statement: *statement,
                span: statement_of.span,
                clauses: &statement_of.clauses,
            });
        }
        for functions in [true, false] {
            for NodeLabel { node, function, statement, span, clauses } in
                plan.labels.iter().filter(|label| label.function.is_some() == functions)
            {
                let new = Named { name: function.as_deref(), statement: *statement, span: *span, clauses };
                named.entry(*node).or_insert(new);
            }
        }
        Deriver { plan, values, named, costs: HashMap::new(), recursions: 0, limit: StatementId(u32::MAX) }
    }

    /// The name of a node, as far as the statement that is followed can know it.
    fn name_of(&self, node: NodeId) -> Option<&Named<'a>> {
        self.named.get(&node).filter(|named| {
            named.statement < self.limit || (named.name.is_none() && named.statement == self.limit)
        })
    }

    fn relation(&self, node: NodeId) -> Option<&'a M> {
        self.values.get(node.index()).and_then(Value::relation)
    }

    fn holds(&self, node: NodeId, from: usize, to: usize) -> bool {
        self.relation(node).is_some_and(|relation| relation.contains(from, to))
    }

    /// How many pairs of base relations the shortest known derivation has; 0 where the pair only meets conditions.
    pub(super) fn cost(&mut self, node: NodeId, from: usize, to: usize) -> u32 {
        if let Some(known) = self.costs.get(&(node, from, to)) {
            return *known;
        }
        let cost = match self.plan.node(node) {
            Node::BaseRelation(base) => {
                u32::from(from != to && !FILTERS.contains(&self.plan.name(base.name)))
            }
            Node::Union(..) => {
                let best = self.alternative(node, from, to);
                best.map_or(0, |best| self.cost(best, from, to))
            }
            Node::Intersection(left, right) => {
                self.cost(left, from, to).saturating_add(self.cost(right, from, to))
            }
            Node::Difference(inner, _)
            | Node::RestrictRows(_, inner)
            | Node::RestrictColumns(inner, _)
            | Node::Immediate(inner) => self.cost(inner, from, to),
            Node::Inverse(inner) => self.cost(inner, to, from),
            Node::Sequence(left, right) => {
                let middle = self.middle(left, right, from, to);
                middle.map_or(0, |middle| {
                    self.cost(left, from, middle).saturating_add(self.cost(right, middle, to))
                })
            }
            Node::Star(_) | Node::Optional(_) if from == to => 0,
            Node::Optional(inner) => self.cost(inner, from, to),
            Node::Plus(inner) | Node::Star(inner) => {
                let path = self.relation(inner).and_then(|relation| relation.shortest_path(from, to));
                path.unwrap_or_default()
                    .windows(2)
                    .fold(0, |sum: u32, step| sum.saturating_add(self.cost(inner, step[0], step[1])))
            }
            Node::Recursive { group, index, .. } => {
                if self.recursions >= RECURSIONS {
                    return TOO_DEEP;
                }
                self.recursions += 1;
                let body = self.body(group.0, index);
                let cost = body.map_or(1, |body| self.cost(body, from, to));
                self.recursions -= 1;
                cost
            }
            _ => 0,
        };
        self.costs.insert((node, from, to), cost);
        cost
    }

    fn body(&self, group: u32, index: u32) -> Option<NodeId> {
        self.plan.groups.get(group as usize)?.bodies.get(index as usize).copied()
    }

    /// The cheapest part of a union that holds; parts of parts are compared with each other.
    fn alternative(&mut self, node: NodeId, from: usize, to: usize) -> Option<NodeId> {
        let mut open = vec![node];
        let mut parts = Vec::new();
        while let Some(next) = open.pop() {
            match self.plan.node(next) {
                Node::Union(left, right) if next == node || self.name_of(next).is_none() => {
                    open.extend([right, left]);
                }
                _ if self.holds(next, from, to) => parts.push(next),
                _ => {}
            }
        }
        // A name says more than an unnamed expression of the same length.
        parts.sort();
        let named = |part: &NodeId| self.name_of(*part).is_none();
        let order: Vec<bool> = parts.iter().map(named).collect();
        let costs: Vec<u32> = parts.iter().map(|part| self.cost(*part, from, to)).collect();
        (0..parts.len()).min_by_key(|part| (costs[*part], order[*part])).map(|part| parts[part])
    }

    /// The event through which a composition is cheapest.
    fn middle(&mut self, left: NodeId, right: NodeId, from: usize, to: usize) -> Option<usize> {
        let middles: Vec<usize> =
            self.relation(left)?.row(from).iter().filter(|middle| self.holds(right, *middle, to)).collect();
        middles
            .into_iter()
            .min_by_key(|middle| self.cost(left, from, *middle).saturating_add(self.cost(right, *middle, to)))
    }

    /// The pair as edges from one event to the other, or as edges that hold side by side.
    pub(super) fn edges(&mut self, node: NodeId, from: usize, to: usize) -> Vec<Edge> {
        self.build(node, from, to, DEPTH)
    }

    /// The edge of a named relation.
    pub(super) fn edge(&mut self, node: NodeId, name: &str, from: usize, to: usize) -> Edge {
        match self.build(node, from, to, DEPTH).pop() {
            Some(edge) if edge.relation == name => edge,
            _ => Edge { relation: name.to_owned(), ..plain("", from, to) },
        }
    }

    fn build(&mut self, node: NodeId, from: usize, to: usize, depth: usize) -> Vec<Edge> {
        if self.cost(node, from, to) == 0 {
            return Vec::new();
        }
        if let Node::BaseRelation(base) = self.plan.node(node) {
            return vec![plain(self.plan.name(base.name), from, to)];
        }
        let Some(statement) = self.name_of(node).map(|named| named.statement) else {
            return self.parts(node, from, to, depth);
        };
        let outside = std::mem::replace(&mut self.limit, statement);
        let mut edge = plain("", from, to);
        let target = self.follow(node, from, to, &mut edge);
        if depth > 0 && !matches!(self.plan.node(target), Node::BaseRelation(_)) {
            let inside = self.name_of(target).map_or(statement, |named| named.statement);
            self.limit = inside;
            edge.because = self.parts(target, from, to, depth - 1);
        }
        self.limit = outside;
        vec![edge]
    }

    /// Names the edge of a named node after the node and after the alternative that holds, and says which node this is.
    fn follow(&mut self, node: NodeId, from: usize, to: usize, edge: &mut Edge) -> NodeId {
        if let Some(named) = self.named.get(&node) {
            edge.relation = self.text_of(named);
            edge.clauses = named.clauses.to_vec();
            edge.statement = Some(self.place(named.statement));
        }
        let mut target = node;
        let mut cited = false;
        for _ in 0..CHOICES {
            let Some(next) = self.within(target, from, to) else { break };
            if let Node::BaseRelation(base) = self.plan.node(next) {
                if !cited {
                    edge.via = Some(self.plan.name(base.name).to_owned());
                    target = next;
                }
                break;
            }
            let Some(named) = self.name_of(next) else {
                target = next;
                continue;
            };
            // What is cited in its own right says more than the names inside it, but for a function's.
            let function =
                self.plan.labels.iter().any(|label| label.node == next && label.function.is_some());
            if cited && named.name.is_some() && !function {
                break;
            }
            edge.via = Some(self.text_of(named));
            if !named.clauses.is_empty() {
                edge.clauses = named.clauses.to_vec();
                edge.statement = Some(self.place(named.statement));
            }
            cited = named.name.is_none();
            target = next;
            if !cited {
                break;
            }
        }
        target
    }

    /// The only thing that a node's pair rests on, where it is a choice or a condition.
    fn within(&mut self, node: NodeId, from: usize, to: usize) -> Option<NodeId> {
        match self.plan.node(node) {
            Node::Union(..) => self.alternative(node, from, to),
            Node::Difference(inner, _)
            | Node::RestrictRows(_, inner)
            | Node::RestrictColumns(inner, _)
            | Node::Immediate(inner)
            | Node::Optional(inner) => Some(inner),
            Node::Intersection(left, right) => {
                match (self.cost(left, from, to), self.cost(right, from, to)) {
                    (0, _) => Some(right),
                    (_, 0) => Some(left),
                    _ => None,
                }
            }
            Node::Recursive { group, index, .. } => self.body(group.0, index),
            _ => None,
        }
    }

    /// What a node's pair is made of.
    fn parts(&mut self, node: NodeId, from: usize, to: usize, depth: usize) -> Vec<Edge> {
        match self.plan.node(node) {
            Node::BaseRelation(base) => vec![plain(self.plan.name(base.name), from, to)],
            Node::Intersection(left, right) => {
                let mut edges = self.build(left, from, to, depth);
                edges.extend(self.build(right, from, to, depth));
                edges
            }
            Node::Sequence(left, right) => {
                let Some(middle) = self.middle(left, right, from, to) else { return Vec::new() };
                let mut edges = self.build(left, from, middle, depth);
                edges.extend(self.build(right, middle, to, depth));
                edges
            }
            Node::Inverse(inner) => self.build(inner, to, from, depth),
            Node::Recursive { group, index, .. } => match (self.body(group.0, index), depth) {
                (Some(body), 1..) => self.build(body, from, to, depth - 1),
                _ => Vec::new(),
            },
            Node::Plus(inner) | Node::Star(inner) => {
                let path = self.relation(inner).and_then(|relation| relation.shortest_path(from, to));
                let steps = path.unwrap_or_default();
                steps.windows(2).flat_map(|step| self.build(inner, step[0], step[1], depth)).collect()
            }
            _ => match self.within(node, from, to) {
                Some(inner) => self.build(inner, from, to, depth),
                None => Vec::new(),
            },
        }
    }

    fn text_of(&self, named: &Named<'a>) -> String {
        match named.name {
            Some(name) => name.to_owned(),
            None => {
                let text = text_at(self.plan, named.span);
                match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                    Some(inner) if is_balanced(inner) => inner.to_owned(),
                    _ => text,
                }
            }
        }
    }

    pub(super) fn place(&self, statement: StatementId) -> Place {
        place(self.plan, statement)
    }
}

/// Whether every parenthesis is closed after it was opened.
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

/// Where a statement of a model stands.
pub(super) fn place(plan: &CompiledModel, statement: StatementId) -> Place {
    let span = plan.statement(statement).span;
    let file = plan.sources.get(usize::from(span.source.0)).map_or("", |source| &source.name);
    // The text of a model itself goes by the model's name.
    let extension = if file.ends_with(".cat") { "" } else { ".cat" };
    Place { file: format!("{file}{extension}"), line: span.line }
}

/// The text of a place without comments, on one line.
pub(super) fn text_at(plan: &CompiledModel, span: CatSpan) -> String {
    let source = plan.sources.get(usize::from(span.source.0));
    let mut text = source
        .and_then(|source| source.text.get(span.offset as usize..span.end() as usize))
        .unwrap_or("")
        .to_owned();
    while let Some(start) = text.find("(*")
        && let Some(length) = text[start..].find("*)")
    {
        text.replace_range(start..start + length + 2, " ");
    }
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

pub(super) fn event(index: usize) -> EventId {
    EventId(u16::try_from(index).unwrap_or(u16::MAX))
}

fn plain(relation: &str, from: usize, to: usize) -> Edge {
    Edge {
        from: event(from),
        to: event(to),
        relation: relation.to_owned(),
        via: None,
        statement: None,
        clauses: Vec::new(),
        because: Vec::new(),
    }
}
