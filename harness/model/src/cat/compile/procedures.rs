//! Axioms and herd's procedures, which are parameterized axioms.

use super::{BoundName, CatCompiler, ScopeId};
use crate::cat::ast::{Identifier, Procedure, StatementKind};
use crate::cat::error::CatProblem;
use crate::cat::plan::Axiom;
use crate::cat::prelude;

impl<'m> CatCompiler<'m> {
    /// Declares a procedure. Its body is checked at each call, because a library procedure may be unused.
    pub(super) fn define_procedure(&mut self, procedure: &'m Procedure, scope: ScopeId) {
        self.report_duplicates(procedure.parameters.iter());
        self.procedures.push((procedure, scope));
    }

    /// Adds the axioms of a statement under the name of the enclosing call, and returns the scope of the next statement.
    /// The statement may call the first `visible` procedures.
    pub(super) fn inline_procedure(
        &mut self,
        kind: &'m StatementKind,
        scope: ScopeId,
        enclosing_call: Option<&'m Identifier>,
        visible: usize,
    ) -> ScopeId {
        match kind {
            StatementKind::Let(bindings) => return self.bind_definitions(bindings, scope),
            StatementKind::Axiom { kind, negated, is_flag: flag, body, name } => {
                if let Ok(node) = self.lower_axiom_body(*kind, body, scope) {
                    self.axioms.push(Axiom {
                        kind: *kind,
                        negated: *negated,
                        is_flag: *flag,
                        node,
                        name: enclosing_call.or(name.as_ref()).map(|name| name.text.clone()),
                        statement: self.graph.statement,
                    });
                }
            }
            StatementKind::Call { procedure: callee, arguments, name } => {
                // A later definition hides an earlier one. A procedure can call only those before
                // it, so that calls end.
                let declared = self.procedures.iter().take(visible).enumerate().rev();
                let own = declared.map(|(index, (procedure, scope))| (index, *procedure, *scope));
                let predefined = prelude::iter_procedures().map(|procedure| (0, procedure, None));
                let Some((index, procedure, procedure_scope)) =
                    own.chain(predefined).find(|(_, procedure, _)| procedure.name.text == callee.text)
                else {
                    self.report_problem(
                        CatProblem::UnknownProcedure { name: callee.text.clone() },
                        callee.span,
                    );
                    return scope;
                };
                let parameters = &procedure.parameters;
                let count = parameters.len();
                let Ok(values) = self.lower_arguments(&callee.text, count, arguments, callee.span, scope)
                else {
                    return scope;
                };
                let mut inner = procedure_scope;
                for (parameter, value) in parameters.iter().zip(values) {
                    inner = self.bind_name(inner, &parameter.text, BoundName::Value(value));
                }
                self.calls.push((&callee.text, callee.span));
                for (kind, _) in &procedure.body {
                    inner = self.inline_procedure(
                        kind,
                        inner,
                        enclosing_call.or(name.as_ref()).or(Some(callee)),
                        index,
                    );
                }
                self.calls.pop();
            }
            StatementKind::Procedure(procedure) => self.define_procedure(procedure, scope),
        }
        scope
    }
}
