//! Lowers a cat syntax tree to an evaluation plan.
//!
//! The pass resolves names, inlines functions, expands comprehensions and checks kinds. The type system has
//! two kinds, set and relation; `0` belongs to both.

mod lower;
mod names;
mod procedures;
mod recursion;

use super::ast::{Bindings, CatDefinition, CatExpression, CatModel, Procedure, StatementKind};
use super::error::{CatError, CatErrors, CatProblem};
use super::graph::ExpressionGraph;
use super::layout::{RawGroup, layout_plan};
use super::load::clauses_cited_before;
use super::plan::{
    Axiom, CompiledModel, Definition, NodeId, NodeKind, NodeLabel, PlanNode, StatementId, StatementSource,
};
use super::prelude;
use super::source::{CatSpan, SourceText};
use super::vocabulary::{ClassFamilies, Vocabulary};
use crate::quick::QuickMap;
use std::sync::Arc;

/// Bound on the nesting depth of expressions after inlining.
const DEPTH_LIMIT: usize = 400;
/// Bound on the visited expressions, which limits the expansion of nested functions and comprehensions.
const STEP_LIMIT: usize = 200_000;
/// Bound on the enclosing calls that an error message lists.
const MAX_SHOWN_CALLS: usize = 3;

/// Compiles a model for all programs that use the given storage classes.
///
/// The plan depends only on the model, the names of `vocabulary` and `families`. Callers may therefore cache
/// it by the storage classes of the program.
///
/// # Errors
/// All semantic errors: unknown names, sets where relations are expected, recursion without a least fixpoint,
/// and expansions past the limits.
pub fn compile(
    model: &CatModel,
    vocabulary: &Vocabulary,
    families: &ClassFamilies,
) -> Result<CompiledModel, CatErrors> {
    let mut compiler = CatCompiler {
        model,
        vocabulary,
        families,
        graph: ExpressionGraph::new(vocabulary, families),
        scopes: Vec::new(),
        groups: Vec::new(),
        in_recursive_binding: false,
        checked_functions: Vec::new(),
        calls: Vec::new(),
        memoized_calls: QuickMap::default(),
        functions: QuickMap::default(),
        procedures: Vec::new(),
        axioms: Vec::new(),
        labels: Vec::new(),
        depth: 0,
        steps: 0,
        limit_reached: false,
        errors: Vec::new(),
    };
    let mut definitions = Vec::new();
    let mut statements = Vec::new();
    let mut scope = None;
    for (index, statement) in model.statements.iter().enumerate() {
        let id = StatementId(index as u32);
        compiler.graph.statement = id;
        let names = match &statement.kind {
            StatementKind::Let(bindings) => {
                for binding in bindings.bindings.iter().filter(|binding| binding.parameters.is_some()) {
                    compiler.functions.insert(binding.name.span, id);
                }
                scope = compiler.bind_definitions(bindings, scope);
                // The last entries are those of this statement.
                let first = compiler.scopes.len() - bindings.bindings.len();
                for entry in &compiler.scopes[first..] {
                    let node = match entry.bound {
                        BoundName::Value(LoweredTerm {
                            value: TypedNode::Set(node) | TypedNode::Relation(node),
                            ..
                        }) => node,
                        BoundName::Value(LoweredTerm { value: TypedNode::Zero, .. }) => {
                            compiler.graph.intern_node(PlanNode::Empty(NodeKind::Relation))
                        }
                        _ => continue,
                    };
                    definitions.push(Definition { name: entry.name.to_owned(), node, statement: id });
                }
                bindings.bindings.iter().map(|binding| binding.name.text.clone()).collect()
            }
            StatementKind::Axiom { name, .. } => {
                scope = compiler.inline_procedure(&statement.kind, scope, None, compiler.procedures.len());
                name.iter().map(|name| name.text.clone()).collect()
            }
            StatementKind::Call { procedure, name, .. } => {
                scope = compiler.inline_procedure(&statement.kind, scope, None, compiler.procedures.len());
                vec![name.as_ref().unwrap_or(procedure).text.clone()]
            }
            StatementKind::Procedure(procedure) => {
                compiler.define_procedure(procedure, scope);
                vec![procedure.name.text.clone()]
            }
        };
        statements.push(StatementSource { names, span: statement.span, clauses: statement.clauses.clone() });
    }
    if !compiler.errors.is_empty() {
        let name = model.sources.first().map(|source| source.name.clone()).unwrap_or_default();
        return Err(CatErrors::new(name, compiler.errors));
    }
    let (axioms, labels) = (compiler.axioms, compiler.labels);
    let sources = Arc::clone(&model.sources);
    let plan = CompiledModel { axioms, definitions, labels, statements, sources, ..CompiledModel::default() };
    Ok(layout_plan(compiler.graph, &compiler.groups, plan))
}

/// The error is already reported.
struct ErrorReported;

type LowerResult<T> = Result<T, ErrorReported>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TypedNode {
    /// `0`: a set or a relation, depending on the context.
    Zero,
    Set(NodeId),
    Relation(NodeId),
    /// A set of storage classes.
    Mask(u8),
}

/// A value, and the recursive name that is being defined and that it depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LoweredTerm<'m> {
    value: TypedNode,
    recursive: Option<&'m str>,
}

impl TypedNode {
    fn new(kind: NodeKind, node: NodeId) -> TypedNode {
        match kind {
            NodeKind::Set => TypedNode::Set(node),
            NodeKind::Relation => TypedNode::Relation(node),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            TypedNode::Zero => "empty",
            TypedNode::Set(_) => "a set",
            TypedNode::Relation(_) => "a relation",
            TypedNode::Mask(_) => "a set of storage classes",
        }
    }
}

#[derive(Clone, Copy)]
enum BoundName<'m> {
    Value(LoweredTerm<'m>),
    Function(&'m CatDefinition, ScopeId),
    /// Its definition has a mistake, so its uses are not reported.
    Broken,
}

/// The innermost entry of [`CatCompiler::scopes`] that is visible; each refers to its enclosing scope.
type ScopeId = Option<usize>;

struct ScopeEntry<'m> {
    name: &'m str,
    bound: BoundName<'m>,
    outer: ScopeId,
}

struct CatCompiler<'m> {
    model: &'m CatModel,
    vocabulary: &'m Vocabulary,
    families: &'m ClassFamilies,
    graph: ExpressionGraph<'m>,
    scopes: Vec<ScopeEntry<'m>>,
    groups: Vec<RawGroup>,
    /// True if the body of a `let rec` is being lowered.
    in_recursive_binding: bool,
    /// The functions whose bodies are checked, outermost first.
    checked_functions: Vec<&'m str>,
    calls: Vec<(&'m str, CatSpan)>,
    /// Memoized calls, keyed by the function's location, its scope and its arguments.
    memoized_calls: QuickMap<(CatSpan, ScopeId, Vec<LoweredTerm<'m>>), LoweredTerm<'m>>,
    /// The procedures in source order, each with its scope.
    procedures: Vec<(&'m Procedure, ScopeId)>,
    axioms: Vec<Axiom>,
    /// The statements that define functions, by the position of the function's name.
    functions: QuickMap<CatSpan, StatementId>,
    labels: Vec<NodeLabel>,
    depth: usize,
    steps: usize,
    /// True if a limit is exceeded, which ends the lowering.
    limit_reached: bool,
    errors: Vec<CatError>,
}

impl<'m> CatCompiler<'m> {
    fn report_problem(&mut self, problem: CatProblem, span: CatSpan) -> ErrorReported {
        self.report_with_help(problem, span, Vec::new())
    }

    fn report_with_help(
        &mut self,
        problem: CatProblem,
        span: CatSpan,
        mut related: Vec<(String, CatSpan)>,
    ) -> ErrorReported {
        // Functions are inlined, so a mistake in one would appear again at every use.
        let repeated = |error: &CatError| {
            error.problem == problem && error.span.source == span.source && error.span.offset == span.offset
        };
        if self.errors.iter().any(repeated) {
            return ErrorReported;
        }
        for (name, call) in self.calls.iter().rev().take(MAX_SHOWN_CALLS) {
            related.push((format!("in this use of `{name}`"), *call));
        }
        let unknown = SourceText { name: String::new(), text: Arc::from("") };
        let source = self
            .model
            .sources
            .get(usize::from(span.source.0))
            .or_else(|| prelude::find_source(span.source))
            .unwrap_or(&unknown);
        let mut error = CatError::new(problem, span, source);
        error.related = related;
        self.errors.push(error);
        ErrorReported
    }

    fn bind_name(&mut self, scope: ScopeId, name: &'m str, bound: BoundName<'m>) -> ScopeId {
        self.scopes.push(ScopeEntry { name, bound, outer: scope });
        Some(self.scopes.len() - 1)
    }

    fn label_call(&mut self, function: &'m CatDefinition, value: TypedNode) {
        let (TypedNode::Relation(node), Some(statement)) = (value, self.functions.get(&function.name.span))
        else {
            return;
        };
        let clauses =
            self.model.statements.get(statement.0 as usize).map_or(Vec::new(), |s| s.clauses.clone());
        self.push_label(NodeLabel {
            node,
            function: Some(function.name.text.clone()),
            statement: *statement,
            span: function.name.span,
            clauses,
        });
    }

    /// Records the clauses that are cited before a part of a union, or before the parts in front of it.
    fn label_part(&mut self, part: &CatExpression, value: TypedNode, cited: &mut Vec<String>) {
        let source = self.model.sources.get(usize::from(part.span.source.0));
        let before = source.and_then(|source| source.text.get(..part.span.offset as usize));
        let clauses = before.map_or(Vec::new(), clauses_cited_before);
        if !clauses.is_empty() {
            *cited = clauses;
        }
        if let TypedNode::Relation(node) = value
            && !cited.is_empty()
        {
            let statement = self.graph.statement;
            self.push_label(NodeLabel {
                node,
                function: None,
                statement,
                span: part.span,
                clauses: cited.clone(),
            });
        }
    }

    fn push_label(&mut self, label: NodeLabel) {
        if !self.labels.contains(&label) {
            self.labels.push(label);
        }
    }

    /// Binds the definitions of a `let`. Their entries are the last ones of `scopes`, in order.
    fn bind_definitions(&mut self, bindings: &'m Bindings, scope: ScopeId) -> ScopeId {
        // Uses of these names would only report consequences of the duplicate.
        let bounds = if self.report_duplicates(bindings.bindings.iter().map(|binding| &binding.name)) {
            vec![BoundName::Broken; bindings.bindings.len()]
        } else if bindings.is_recursive {
            self.lower_recursive_bindings(bindings, scope)
        } else {
            bindings.bindings.iter().map(|binding| self.lower_binding(binding, scope)).collect()
        };
        let named = bindings.bindings.iter().zip(bounds);
        named.fold(scope, |inner, (binding, bound)| self.bind_name(inner, &binding.name.text, bound))
    }

    fn lower_binding(&mut self, binding: &'m CatDefinition, scope: ScopeId) -> BoundName<'m> {
        if binding.parameters.is_none() {
            return self.lower_expression(&binding.body, scope).map_or(BoundName::Broken, BoundName::Value);
        }
        let errors = self.errors.len();
        self.check_function(binding, scope);
        if self.errors.len() > errors { BoundName::Broken } else { BoundName::Function(binding, scope) }
    }
}
