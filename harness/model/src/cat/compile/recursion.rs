//! `let rec`: mutually recursive definitions, evaluated to their least fixpoint.
//!
//! Bodies must be monotone. Complement and the right side of a difference reject recursive names, so the
//! fixpoint exists (Knaster–Tarski).

use super::{BoundName, CatCompiler, ErrorReported, LowerResult, LoweredTerm, ScopeId, TypedNode};
use crate::cat::ast::{Bindings, CatExpression};
use crate::cat::error::CatProblem;
use crate::cat::layout::RawGroup;
use crate::cat::plan::{GroupId, NodeId, NodeKind, PlanNode};

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

        self.in_recursive_binding = true;
        let inferred = self.infer_kinds(bindings, scope);
        self.in_recursive_binding = false;
        let Ok(kinds) = inferred else { return broken };
        let group = GroupId(self.groups.len() as u32);
        // Nodes that the bodies add from here on belong to the group if they depend on a member.
        let created = self.graph.nodes.len() as u32;
        let nodes = kinds.iter().enumerate().map(|(index, kind)| {
            self.graph.intern_node(PlanNode::Recursive { group, index: index as u32, node_kind: *kind })
        });
        let members: Vec<NodeId> = nodes.collect();
        let values: Vec<TypedNode> =
            kinds.iter().zip(&members).map(|(kind, node)| TypedNode::new(*kind, *node)).collect();
        let inner = self.bind_members(bindings, &values, scope);
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
        values.into_iter().map(|value| BoundName::Value(LoweredTerm { value, recursive: None })).collect()
    }

    /// Binds the names of recursive definitions to values.
    fn bind_members(&mut self, bindings: &'m Bindings, values: &[TypedNode], scope: ScopeId) -> ScopeId {
        bindings.bindings.iter().zip(values).fold(scope, |outer, (binding, value)| {
            let name = &binding.name.text;
            let lowered = LoweredTerm { value: *value, recursive: Some(name) };
            self.bind_name(outer, name, BoundName::Value(lowered))
        })
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
            (kind, TypedNode::Zero) => Some(self.graph.intern_node(PlanNode::Empty(kind))),
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

    /// Finds for each definition whether it is a set or a relation: lowers the bodies with `0`, which can be both, as
    /// the value of a name whose kind is not known yet.
    fn infer_kinds(&mut self, bindings: &'m Bindings, scope: ScopeId) -> LowerResult<Vec<NodeKind>> {
        let mut values = vec![TypedNode::Zero; bindings.bindings.len()];
        let labels = self.labels.len();
        // Each pass finds at least one more kind, or none is left.
        for _ in &bindings.bindings {
            let mut reported = false;
            for (index, binding) in bindings.bindings.iter().enumerate() {
                if matches!(values[index], TypedNode::Zero) {
                    let inner = self.bind_members(bindings, &values, scope);
                    match self.lower_expression(&binding.body, inner).map(|lowered| lowered.value) {
                        Ok(TypedNode::Mask(_)) => {}
                        Ok(value) => values[index] = value,
                        Err(ErrorReported) => reported = true,
                    }
                }
            }
            if reported {
                return Err(ErrorReported);
            }
        }
        self.labels.truncate(labels);
        // A name that is defined only by itself has the least fixpoint in either kind: it is empty.
        let is_set = |value: &TypedNode| matches!(value, TypedNode::Set(_));
        Ok(values
            .iter()
            .map(|value| if is_set(value) { NodeKind::Set } else { NodeKind::Relation })
            .collect())
    }
}
