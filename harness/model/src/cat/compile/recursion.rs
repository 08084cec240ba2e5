//! `let rec`: mutually recursive definitions, evaluated to their least fixpoint.
//!
//! Bodies must be monotone. Complement and the right side of a difference reject recursive names, so the
//! fixpoint exists (Knaster–Tarski).

use super::names::{Builtin, NameMeaning};
use super::{BoundName, CatCompiler, LoweredTerm, ScopeId, TypedNode};
use crate::cat::ast::{Bindings, CatExpression, ComprehensionFamily, ExpressionKind};
use crate::cat::error::CatProblem;
use crate::cat::layout::RawGroup;
use crate::cat::plan::{GroupId, NodeId, NodeKind};
use crate::cat::vocabulary::VocabularyEntry;

/// Names whose kind is being inferred, innermost last; `None` until it is known.
type KindProbe<'m> = Vec<(&'m str, Option<NodeKind>)>;

impl<'m> CatCompiler<'m> {
    /// Lowers the definitions of a `let rec`.
    pub(super) fn lower_recursive_bindings(
        &mut self,
        bindings: &'m Bindings,
        scope: ScopeId,
    ) -> Vec<BoundName<'m>> {
        let broken = vec![BoundName::Broken; bindings.bindings.len()];
        let names = || bindings.bindings.iter().map(|binding| &binding.name);
        if self.in_recursive_binding {
            if let Some(name) = names().next() {
                self.report_problem(CatProblem::NestedRecursion, name.span);
            }
            return broken;
        }
        let mut has_functions = false;
        for binding in bindings.bindings.iter().filter(|binding| binding.parameters.is_some()) {
            let problem = CatProblem::FunctionInRecursion { name: binding.name.text.clone() };
            self.report_problem(problem, binding.name.span);
            has_functions = true;
        }
        if has_functions {
            return broken;
        }

        let kinds = self.infer_kinds(bindings, scope);
        let group = GroupId(self.groups.len() as u32);
        // Nodes that the bodies add from here on belong to the group if they depend on a member.
        let created = self.graph.nodes.len() as u32;
        let members: Vec<NodeId> = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| self.graph.recursive_node(group, index as u32, *kind))
            .collect();
        let typed_node = |node: NodeId, kind: NodeKind| match kind {
            NodeKind::Set => TypedNode::Set(node),
            NodeKind::Relation => TypedNode::Relation(node),
        };
        let mut inner = scope;
        for ((name, node), kind) in names().zip(&members).zip(&kinds) {
            let lowered = LoweredTerm { value: typed_node(*node, *kind), recursive: Some(&name.text) };
            inner = self.bind_name(inner, &name.text, BoundName::Value(lowered));
        }
        self.in_recursive_binding = true;
        let bodies: Vec<Option<NodeId>> = bindings
            .bindings
            .iter()
            .zip(&kinds)
            .map(|(binding, kind)| self.lower_recursive_body(&binding.body, *kind, inner))
            .collect();
        self.in_recursive_binding = false;
        let Some(bodies) = bodies.into_iter().collect::<Option<Vec<NodeId>>>() else {
            return broken;
        };
        self.groups.push(RawGroup { first_node: created, members: members.clone(), bodies });
        members
            .iter()
            .zip(&kinds)
            .map(|(node, kind)| {
                BoundName::Value(LoweredTerm { value: typed_node(*node, *kind), recursive: None })
            })
            .collect()
    }

    fn lower_recursive_body(
        &mut self,
        body: &'m CatExpression,
        kind: NodeKind,
        scope: ScopeId,
    ) -> Option<NodeId> {
        let lowered = self.lower_expression(body, scope).ok()?;
        match (kind, lowered.value) {
            (NodeKind::Set, TypedNode::Set(node)) | (NodeKind::Relation, TypedNode::Relation(node)) => {
                Some(node)
            }
            (NodeKind::Set, TypedNode::Zero) => Some(self.graph.empty_set()),
            (NodeKind::Relation, TypedNode::Zero) => Some(self.graph.empty_relation()),
            (kind, found) => {
                let expected = match kind {
                    NodeKind::Set => "a set",
                    NodeKind::Relation => "a relation",
                };
                self.report_problem(CatProblem::WrongKind { expected, found: found.describe() }, body.span);
                None
            }
        }
    }

    /// Infers for each definition from its body whether it is a set or a relation.
    fn infer_kinds(&mut self, bindings: &'m Bindings, scope: ScopeId) -> Vec<NodeKind> {
        let mut probe: KindProbe<'m> =
            bindings.bindings.iter().map(|binding| (binding.name.text.as_str(), None)).collect();
        // Each pass infers at least one more kind, or none is left.
        for _ in &bindings.bindings {
            for (index, binding) in bindings.bindings.iter().enumerate() {
                if probe[index].1.is_none() {
                    probe[index].1 = self.infer_kind(&binding.body, scope, &mut probe);
                }
            }
        }
        // A name that is defined only by itself has the least fixpoint in either kind: it is empty.
        probe.into_iter().map(|(_, kind)| kind.unwrap_or(NodeKind::Relation)).collect()
    }

    /// Infers the kind of an expression from its syntax. A call is a relation if its kind depends on its
    /// arguments.
    fn infer_kind(
        &mut self,
        expression: &'m CatExpression,
        scope: ScopeId,
        probe: &mut KindProbe<'m>,
    ) -> Option<NodeKind> {
        match &expression.kind {
            ExpressionKind::Zero => None,
            ExpressionKind::Universe => Some(NodeKind::Set),
            ExpressionKind::Name(name) => {
                if let Some((_, kind)) = probe.iter().rev().find(|(known, _)| known == name) {
                    return *kind;
                }
                self.infer_kind_of_name(name, scope)
            }
            ExpressionKind::Union(list)
            | ExpressionKind::Intersection(list)
            | ExpressionKind::Difference(list) => {
                list.iter().find_map(|operand| self.infer_kind(operand, scope, probe))
            }
            ExpressionKind::Complement(inner) => self.infer_kind(inner, scope, probe),
            ExpressionKind::Try(pair) => {
                self.infer_kind(&pair[0], scope, probe).or_else(|| self.infer_kind(&pair[1], scope, probe))
            }
            ExpressionKind::Sequence(_)
            | ExpressionKind::Product(_)
            | ExpressionKind::Inverse(_)
            | ExpressionKind::Plus(_)
            | ExpressionKind::Star(_)
            | ExpressionKind::Optional(_)
            | ExpressionKind::LinearOrder(_)
            | ExpressionKind::Identity(_) => Some(NodeKind::Relation),
            ExpressionKind::Call(name, _) => match self.resolve_name(&name.text, scope) {
                Some(NameMeaning::Builtin(Builtin::Domain | Builtin::Range)) => Some(NodeKind::Set),
                Some(NameMeaning::Base(VocabularyEntry::Indexed(_))) => Some(NodeKind::Set),
                Some(NameMeaning::Bound(BoundName::Function(function, inner))) => {
                    // The parameters shadow no name whose kind is inferred, so a name that depends only on them stays open.
                    let before = probe.len();
                    let parameters = function.parameters.iter().flatten();
                    probe.extend(parameters.map(|parameter| (parameter.text.as_str(), None)));
                    let kind = self.infer_kind(&function.body, inner, probe);
                    probe.truncate(before);
                    kind
                }
                _ => None,
            },
            ExpressionKind::Let(bindings, body) => {
                let before = probe.len();
                for binding in &bindings.bindings {
                    let kind = self.infer_kind(&binding.body, scope, probe);
                    probe.push((&binding.name.text, kind));
                }
                let kind = self.infer_kind(body, scope, probe);
                probe.truncate(before);
                kind
            }
            ExpressionKind::Comprehension(comprehension) => {
                let before = probe.len();
                let first = match &comprehension.family {
                    ComprehensionFamily::Listed(members) => members.first(),
                    ComprehensionFamily::Named(_) => None,
                };
                for (index, variable) in comprehension.variables.iter().enumerate() {
                    let value = first.and_then(|(member, _)| member.get(index));
                    let kind = value.and_then(|value| self.infer_kind(value, scope, probe));
                    probe.push((&variable.text, kind));
                }
                let kind = self.infer_kind(&comprehension.body, scope, probe);
                probe.truncate(before);
                kind
            }
        }
    }

    fn infer_kind_of_name(&mut self, name: &str, scope: ScopeId) -> Option<NodeKind> {
        match self.resolve_name(name, scope)? {
            NameMeaning::Bound(BoundName::Value(lowered)) => match lowered.value {
                TypedNode::Set(_) => Some(NodeKind::Set),
                TypedNode::Relation(_) => Some(NodeKind::Relation),
                TypedNode::Zero | TypedNode::Mask(_) => None,
            },
            NameMeaning::Builtin(Builtin::Identity) => Some(NodeKind::Relation),
            NameMeaning::Base(VocabularyEntry::Plain(kind)) => Some(kind),
            NameMeaning::Base(VocabularyEntry::Class { .. }) => Some(NodeKind::Set),
            _ => None,
        }
    }
}
