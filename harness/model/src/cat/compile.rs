//! Syntax tree to plan: names are resolved, functions inlined, comprehensions expanded, kinds checked.

mod lower;
mod names;
mod procedures;
mod recursion;

use super::ast::{Binding, Bindings, Expression, Model, Procedure, StatementKind};
use super::error::{CatError, CatErrors, CatProblem};
use super::graph::Graph;
use super::layout::{RawGroup, lay_out};
use super::load::clauses_cited_before;
use super::plan::{Axiom, CompiledModel, Definition, NodeId, NodeLabel, Statement, StatementId};
use super::prelude;
use super::source::{CatSpan, SourceText};
use super::vocabulary::{Families, Vocabulary};
use std::collections::HashMap;
use std::sync::Arc;

/// How deep expressions may nest after functions are inlined.
const DEPTH_LIMIT: usize = 400;
/// How many expressions may be visited in all: bounds what nested functions and comprehensions expand to.
const STEP_LIMIT: usize = 200_000;
/// How many calls around a mistake a message shows.
const SHOWN_CALLS: usize = 3;

/// Compiles a model for programs of one kind.
///
/// The plan depends on the model, the names of `vocabulary` and `families` alone, so it can be kept for all programs
/// with the same storage classes.
///
/// # Errors
/// All mistakes of meaning: unknown names, sets where relations must stand, recursion without least fixpoint, and
/// expansions past the limits.
pub fn compile(
    model: &Model,
    vocabulary: &Vocabulary,
    families: &Families,
) -> Result<CompiledModel, CatErrors> {
    let mut compiler = Compiler {
        model,
        vocabulary,
        families,
        graph: Graph::new(vocabulary, families),
        scopes: Vec::new(),
        groups: Vec::new(),
        recursion: false,
        calls: Vec::new(),
        results: HashMap::new(),
        functions: HashMap::new(),
        procedures: Vec::new(),
        axioms: Vec::new(),
        labels: Vec::new(),
        depth: 0,
        steps: 0,
        stopped: false,
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
                scope = compiler.bind_all(bindings, scope);
                let first = compiler.scopes.len() - bindings.bindings.len();
                for entry in &compiler.scopes[first..] {
                    let node = match entry.bound {
                        Bound::Value(Lowered { value: Value::Set(node) | Value::Relation(node), .. }) => node,
                        Bound::Value(Lowered { value: Value::Zero, .. }) => compiler.graph.empty(),
                        _ => continue,
                    };
                    definitions.push(Definition { name: entry.name.to_owned(), node, statement: id });
                }
                bindings.bindings.iter().map(|binding| binding.name.text.clone()).collect()
            }
            StatementKind::Axiom { name, .. } => {
                scope = compiler.demand(&statement.kind, scope, None, compiler.procedures.len());
                name.iter().map(|name| name.text.clone()).collect()
            }
            StatementKind::Call { procedure, name, .. } => {
                scope = compiler.demand(&statement.kind, scope, None, compiler.procedures.len());
                vec![name.as_ref().unwrap_or(procedure).text.clone()]
            }
            StatementKind::Procedure(procedure) => {
                compiler.define(procedure, scope);
                vec![procedure.name.text.clone()]
            }
        };
        statements.push(Statement { names, span: statement.span, clauses: statement.clauses.clone() });
    }
    if !compiler.errors.is_empty() {
        let name = model.sources.first().map(|source| source.name.clone()).unwrap_or_default();
        return Err(CatErrors::new(name, compiler.errors));
    }
    let (axioms, labels) = (compiler.axioms, compiler.labels);
    let sources = Arc::clone(&model.sources);
    let plan = CompiledModel { axioms, definitions, labels, statements, sources, ..CompiledModel::default() };
    Ok(lay_out(compiler.graph, &compiler.groups, plan))
}

/// The mistake is reported already.
struct Reported;

type Lower<T> = Result<T, Reported>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    /// `0`: a set or a relation, as its place demands.
    Zero,
    Set(NodeId),
    Relation(NodeId),
    /// A set of storage classes.
    Mask(u8),
}

/// A value, and the recursive name that is being defined and that it depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Lowered<'m> {
    value: Value,
    recursive: Option<&'m str>,
}

impl Value {
    fn describe(self) -> &'static str {
        match self {
            Value::Zero => "empty",
            Value::Set(_) => "a set",
            Value::Relation(_) => "a relation",
            Value::Mask(_) => "a set of storage classes",
        }
    }
}

#[derive(Clone, Copy)]
enum Bound<'m> {
    Value(Lowered<'m>),
    Function(&'m Binding, Scope),
    /// Its definition has a mistake, so its uses are not reported.
    Broken,
}

/// The innermost entry of [`Compiler::scopes`] that is visible; each knows the one around it.
type Scope = Option<usize>;

struct ScopeEntry<'m> {
    name: &'m str,
    bound: Bound<'m>,
    outer: Scope,
}

struct Compiler<'m> {
    model: &'m Model,
    vocabulary: &'m Vocabulary,
    families: &'m Families,
    graph: Graph<'m>,
    scopes: Vec<ScopeEntry<'m>>,
    groups: Vec<RawGroup>,
    /// Whether the body of a `let rec` is being lowered.
    recursion: bool,
    calls: Vec<(&'m str, CatSpan)>,
    /// What calls have given: the function by its place, what it sees, and its arguments.
    results: HashMap<(CatSpan, Scope, Vec<Lowered<'m>>), Lowered<'m>>,
    /// The procedures in the order of the text, each with what it sees.
    procedures: Vec<(&'m Procedure, Scope)>,
    axioms: Vec<Axiom>,
    /// The statements that define functions, by the place of the function's name.
    functions: HashMap<CatSpan, StatementId>,
    labels: Vec<NodeLabel>,
    depth: usize,
    steps: usize,
    /// A limit is passed: nothing more is lowered.
    stopped: bool,
    errors: Vec<CatError>,
}

impl<'m> Compiler<'m> {
    fn report(&mut self, problem: CatProblem, span: CatSpan) -> Reported {
        self.report_with(problem, span, Vec::new())
    }

    fn report_with(
        &mut self,
        problem: CatProblem,
        span: CatSpan,
        mut related: Vec<(String, CatSpan)>,
    ) -> Reported {
        let repeated = |error: &CatError| {
            error.problem == problem && error.span.source == span.source && error.span.offset == span.offset
        };
        if self.errors.iter().any(repeated) {
            return Reported;
        }
        for (name, call) in self.calls.iter().rev().take(SHOWN_CALLS) {
            related.push((format!("in this use of `{name}`"), *call));
        }
        let unknown = SourceText { name: String::new(), text: Arc::from("") };
        let source = self
            .model
            .sources
            .get(usize::from(span.source.0))
            .or_else(|| prelude::source(span.source))
            .unwrap_or(&unknown);
        let mut error = CatError::new(problem, span, source);
        error.related = related;
        self.errors.push(error);
        Reported
    }

    fn bind(&mut self, scope: Scope, name: &'m str, bound: Bound<'m>) -> Scope {
        self.scopes.push(ScopeEntry { name, bound, outer: scope });
        Some(self.scopes.len() - 1)
    }

    /// Notes that the value is that of a function.
    fn label_call(&mut self, function: &'m Binding, value: Value) {
        let (Value::Relation(node), Some(statement)) = (value, self.functions.get(&function.name.span))
        else {
            return;
        };
        let clauses =
            self.model.statements.get(statement.0 as usize).map_or(Vec::new(), |s| s.clauses.clone());
        self.label(NodeLabel {
            node,
            function: Some(function.name.text.clone()),
            statement: *statement,
            span: function.name.span,
            clauses,
        });
    }

    /// Notes the clauses that are cited before a part of a union, or before the parts in front of it.
    fn label_part(&mut self, part: &Expression, value: Value, cited: &mut Vec<String>) {
        let source = self.model.sources.get(usize::from(part.span.source.0));
        let before = source.and_then(|source| source.text.get(..part.span.offset as usize));
        let clauses = before.map_or(Vec::new(), clauses_cited_before);
        if !clauses.is_empty() {
            *cited = clauses;
        }
        if let Value::Relation(node) = value
            && !cited.is_empty()
        {
            let statement = self.graph.statement;
            self.label(NodeLabel {
                node,
                function: None,
                statement,
                span: part.span,
                clauses: cited.clone(),
            });
        }
    }

    fn label(&mut self, label: NodeLabel) {
        if !self.labels.contains(&label) {
            self.labels.push(label);
        }
    }

    /// Binds the definitions of a `let`. Their entries are the last ones of `scopes`, in order.
    fn bind_all(&mut self, bindings: &'m Bindings, scope: Scope) -> Scope {
        let mut broken = false;
        for (index, binding) in bindings.bindings.iter().enumerate() {
            let earlier = &bindings.bindings[..index];
            if let Some(first) = earlier.iter().find(|other| other.name.text == binding.name.text) {
                let problem = CatProblem::DuplicateName { name: binding.name.text.clone() };
                self.report_with(problem, binding.name.span, vec![("first here".into(), first.name.span)]);
                broken = true;
            }
        }
        let bounds = if broken {
            vec![Bound::Broken; bindings.bindings.len()]
        } else if bindings.recursive {
            self.recursive_values(bindings, scope)
        } else {
            bindings.bindings.iter().map(|binding| self.binding_value(binding, scope)).collect()
        };
        let named = bindings.bindings.iter().zip(bounds);
        named.fold(scope, |inner, (binding, bound)| self.bind(inner, &binding.name.text, bound))
    }

    fn binding_value(&mut self, binding: &'m Binding, scope: Scope) -> Bound<'m> {
        if binding.parameters.is_none() {
            return self.lower(&binding.body, scope).map_or(Bound::Broken, Bound::Value);
        }
        let errors = self.errors.len();
        self.check_function(binding, scope);
        if self.errors.len() > errors { Bound::Broken } else { Bound::Function(binding, scope) }
    }
}
