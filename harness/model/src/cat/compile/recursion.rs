//! `let rec`: definitions that use one another, as least fixpoints.

use super::names::{Builtin, Meaning};
use super::{Bound, Compiler, Lowered, Scope, Value};
use crate::cat::ast::{Bindings, Expression, ExpressionKind, Iterated};
use crate::cat::error::CatProblem;
use crate::cat::layout::RawGroup;
use crate::cat::plan::{GroupId, NodeId, NodeKind};
use crate::cat::vocabulary::Entry;

/// Names whose kind is being found, innermost last; `None` while it is not known.
type Probe<'m> = Vec<(&'m str, Option<NodeKind>)>;

impl<'m> Compiler<'m> {
    /// The values of a `let rec`.
    pub(super) fn recursive_values(&mut self, bindings: &'m Bindings, scope: Scope) -> Vec<Bound<'m>> {
        let broken = vec![Bound::Broken; bindings.bindings.len()];
        let names = || bindings.bindings.iter().map(|binding| &binding.name);
        if self.recursion {
            if let Some(name) = names().next() {
                self.report(CatProblem::NestedRecursion, name.span);
            }
            return broken;
        }
        let mut functions = false;
        for binding in bindings.bindings.iter().filter(|binding| binding.parameters.is_some()) {
            let problem = CatProblem::FunctionInRecursion { name: binding.name.text.clone() };
            self.report(problem, binding.name.span);
            functions = true;
        }
        if functions {
            return broken;
        }

        let kinds = self.kinds(bindings, scope);
        let group = GroupId(self.groups.len() as u32);
        let created = self.graph.nodes.len() as u32;
        let members: Vec<NodeId> = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| self.graph.recursive(group, index as u32, *kind))
            .collect();
        let value = |node: NodeId, kind: NodeKind| match kind {
            NodeKind::Set => Value::Set(node),
            NodeKind::Relation => Value::Relation(node),
        };
        let mut inner = scope;
        for ((name, node), kind) in names().zip(&members).zip(&kinds) {
            let lowered = Lowered { value: value(*node, *kind), recursive: Some(&name.text) };
            inner = self.bind(inner, &name.text, Bound::Value(lowered));
        }
        self.recursion = true;
        let bodies: Vec<Option<NodeId>> = bindings
            .bindings
            .iter()
            .zip(&kinds)
            .map(|(binding, kind)| self.recursive_body(&binding.body, *kind, inner))
            .collect();
        self.recursion = false;
        let Some(bodies) = bodies.into_iter().collect::<Option<Vec<NodeId>>>() else {
            return broken;
        };
        self.groups.push(RawGroup { created, members: members.clone(), bodies });
        members
            .iter()
            .zip(&kinds)
            .map(|(node, kind)| Bound::Value(Lowered { value: value(*node, *kind), recursive: None }))
            .collect()
    }

    fn recursive_body(&mut self, body: &'m Expression, kind: NodeKind, scope: Scope) -> Option<NodeId> {
        let lowered = self.lower(body, scope).ok()?;
        match (kind, lowered.value) {
            (NodeKind::Set, Value::Set(node)) | (NodeKind::Relation, Value::Relation(node)) => Some(node),
            (NodeKind::Set, Value::Zero) => Some(self.graph.empty_set()),
            (NodeKind::Relation, Value::Zero) => Some(self.graph.empty()),
            (kind, found) => {
                let expected = match kind {
                    NodeKind::Set => "a set",
                    NodeKind::Relation => "a relation",
                };
                self.report(CatProblem::WrongKind { expected, found: found.describe() }, body.span);
                None
            }
        }
    }

    /// Whether each definition is a set or a relation, found from what its body is made of.
    fn kinds(&mut self, bindings: &'m Bindings, scope: Scope) -> Vec<NodeKind> {
        let mut probe: Probe<'m> =
            bindings.bindings.iter().map(|binding| (binding.name.text.as_str(), None)).collect();
        // Each pass settles one more kind at least, or none is left to settle.
        for _ in &bindings.bindings {
            for (index, binding) in bindings.bindings.iter().enumerate() {
                if probe[index].1.is_none() {
                    probe[index].1 = self.kind_of(&binding.body, scope, &mut probe);
                }
            }
        }
        probe.into_iter().map(|(_, kind)| kind.unwrap_or(NodeKind::Relation)).collect()
    }

    /// The kind of an expression as far as its spelling tells; calls of functions count as relations when their
    /// arguments decide.
    fn kind_of(
        &mut self,
        expression: &'m Expression,
        scope: Scope,
        probe: &mut Probe<'m>,
    ) -> Option<NodeKind> {
        match &expression.kind {
            ExpressionKind::Zero => None,
            ExpressionKind::Universe => Some(NodeKind::Set),
            ExpressionKind::Name(name) => {
                if let Some((_, kind)) = probe.iter().rev().find(|(known, _)| known == name) {
                    return *kind;
                }
                self.kind_of_name(name, scope)
            }
            ExpressionKind::Union(list)
            | ExpressionKind::Intersection(list)
            | ExpressionKind::Difference(list) => {
                list.iter().find_map(|operand| self.kind_of(operand, scope, probe))
            }
            ExpressionKind::Complement(inner) => self.kind_of(inner, scope, probe),
            ExpressionKind::Try(pair) => {
                self.kind_of(&pair[0], scope, probe).or_else(|| self.kind_of(&pair[1], scope, probe))
            }
            ExpressionKind::Sequence(_)
            | ExpressionKind::Product(_)
            | ExpressionKind::Inverse(_)
            | ExpressionKind::Plus(_)
            | ExpressionKind::Star(_)
            | ExpressionKind::Optional(_)
            | ExpressionKind::LinearOrder(_)
            | ExpressionKind::Identity(_) => Some(NodeKind::Relation),
            ExpressionKind::Call(name, _) => match self.meaning(&name.text, scope) {
                Some(Meaning::Builtin(Builtin::Domain | Builtin::Range)) => Some(NodeKind::Set),
                Some(Meaning::Base(Entry::Indexed(_))) => Some(NodeKind::Set),
                Some(Meaning::Bound(Bound::Function(function, inner))) => {
                    // The parameters hide nothing that is probed: a name that only they could settle stays open.
                    let before = probe.len();
                    let parameters = function.parameters.iter().flatten();
                    probe.extend(parameters.map(|parameter| (parameter.text.as_str(), None)));
                    let kind = self.kind_of(&function.body, inner, probe);
                    probe.truncate(before);
                    kind
                }
                _ => None,
            },
            ExpressionKind::Let(bindings, body) => {
                let before = probe.len();
                for binding in &bindings.bindings {
                    let kind = self.kind_of(&binding.body, scope, probe);
                    probe.push((&binding.name.text, kind));
                }
                let kind = self.kind_of(body, scope, probe);
                probe.truncate(before);
                kind
            }
            ExpressionKind::Comprehension(comprehension) => {
                let before = probe.len();
                let first = match &comprehension.family {
                    Iterated::Listed(members) => members.first(),
                    Iterated::Named(_) => None,
                };
                for (index, variable) in comprehension.variables.iter().enumerate() {
                    let value = first.and_then(|(member, _)| member.get(index));
                    let kind = value.and_then(|value| self.kind_of(value, scope, probe));
                    probe.push((&variable.text, kind));
                }
                let kind = self.kind_of(&comprehension.body, scope, probe);
                probe.truncate(before);
                kind
            }
        }
    }

    fn kind_of_name(&mut self, name: &str, scope: Scope) -> Option<NodeKind> {
        match self.meaning(name, scope)? {
            Meaning::Bound(Bound::Value(lowered)) => match lowered.value {
                Value::Set(_) => Some(NodeKind::Set),
                Value::Relation(_) => Some(NodeKind::Relation),
                Value::Zero | Value::Mask(_) => None,
            },
            Meaning::Builtin(Builtin::Identity) => Some(NodeKind::Relation),
            Meaning::Base(Entry::Plain(kind)) => Some(kind),
            Meaning::Base(Entry::Class { .. }) => Some(NodeKind::Set),
            _ => None,
        }
    }
}
