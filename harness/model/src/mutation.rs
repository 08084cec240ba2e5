//! Mutants of a model. Each differs from it in one place, so that a test that distinguishes them covers that
//! place.

use std::sync::Arc;

use litmus::{Race, Test, closed_enum};

use crate::cat::ast::{CatExpression, ExpressionKind, StatementKind};
use crate::cat::source::{SourceText, text_of};
use crate::clauses::file_name;
use crate::{Model, PredictOptions, PredictionSummary, predict_summary};

/// One change of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The definition or axiom that is changed.
    pub statement: String,
    /// The file of the changed statement.
    pub file: String,
    /// Its first line there, from 1.
    pub line: u32,
    /// The change: ``without the case `x` ``; numbered if the statement has several such places.
    pub change: String,
    /// The clauses that the statement cites.
    pub clauses: Vec<String>,
}

impl Mutation {
    /// Returns the change without the number that distinguishes equal changes of one statement.
    fn base_change(&self) -> &str {
        self.change.rsplit_once(" #").map_or(&self.change, |(base, _)| base)
    }
}

/// A model with a change.
#[derive(Debug)]
pub struct Mutant {
    /// The change.
    pub mutation: Mutation,
    /// The changed model.
    pub model: Model,
}

/// The difference between the verdicts of a model and its mutant, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// Both race-free, with different allowed outcomes: a device can show the difference.
    Outcome,
    /// Race-free only under the first.
    RacyUnderSecond,
    /// Race-free only under the second.
    RacyUnderFirst,
    /// Both racy, or undefined on different levels, with different consistent executions.
    Executions,
}

impl Difference {
    /// Compares two verdicts of one test; `None` if they agree or one is unknown.
    pub fn compare(first: &PredictionSummary, second: &PredictionSummary) -> Option<Difference> {
        match (first.race, second.race) {
            (Race::Unknown, _) | (_, Race::Unknown) => None,
            (Race::Free, Race::Free) => (first.allowed != second.allowed).then_some(Difference::Outcome),
            (Race::Free, Race::Racy) => Some(Difference::RacyUnderSecond),
            (Race::Racy, Race::Free) => Some(Difference::RacyUnderFirst),
            (Race::Racy, Race::Racy) => (first.allowed != second.allowed || first.level != second.level)
                .then_some(Difference::Executions),
        }
    }
}

/// The shipped models that are mutated; the second entry limits the mutation to one file if the others belong
/// to another model.
pub const MUTATED_MODELS: &[(&str, Option<&str>)] =
    &[("vulkan", None), ("vulkan-2024", Some("vulkan-visible-to.cat")), ("hsa", None)];

closed_enum! {
    /// The kind of proof that no program distinguishes a mutant from its model.
    pub enum EquivalenceReason {
        /// The other conditions of the statement imply the changed one, by the kinds of the engine's sets and
        /// relations.
        Implied = "implied",
        /// Other cases of the statement, or of statements that use it, contain the same pairs.
        Contained = "contained",
        /// Every use of the statement removes what the change adds, or adds what it removes.
        Discarded = "discarded",
        /// No program has such operations: the parser refuses them, or the engine generates none.
        Absent = "absent",
        /// Consistency and races do not depend on the statement; only queries count it.
        Counted = "counted",
    }
}

/// A mutant that no search has distinguished from its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurvivingMutant {
    /// The model.
    pub model: &'static str,
    /// The definition or axiom that is changed.
    pub statement: &'static str,
    /// The change, in the form of [`Mutation::change`].
    pub change: &'static str,
    /// The proof that no program distinguishes the two; `None` if there is none.
    pub equivalence_proof: Option<(EquivalenceReason, &'static str)>,
}

/// Returns a description of the search for distinguishing programs, and the mutants without one.
///
/// The list is `harness/model/clauses/unkilled.tsv`, a line per mutant.
pub fn list_surviving_mutants() -> (&'static str, Vec<SurvivingMutant>) {
    let mut lines = include_str!("../clauses/unkilled.tsv").lines();
    let description = lines.next().unwrap_or_default();
    let entry = |line: &'static str| {
        let mut fields = line.split('\t');
        let (model, statement, change) = (fields.next()?, fields.next()?, fields.next()?);
        let word = fields.next()?;
        let reason = EquivalenceReason::from_name(word);
        Some(SurvivingMutant { model, statement, change, equivalence_proof: reason.zip(fields.next()) })
    };
    (description, lines.filter_map(entry).collect())
}

/// Returns all mutants of a model that are valid models. Statements stay unchanged if `is_mutated` returns false for the name of
/// their file and the clauses that they cite.
pub fn generate_mutants(model: &Model, is_mutated: &dyn Fn(&str, &[String]) -> bool) -> Vec<Mutant> {
    let ast = model.ast();
    let mut found = Vec::new();
    for (index, statement) in ast.statements.iter().enumerate() {
        let Some(source) = ast.sources.get(usize::from(statement.span.source.0)) else { continue };
        if !is_mutated(&source.name, &statement.clauses) {
            continue;
        }
        let mut add = |name: &str, change: String, replacement: Option<StatementKind>| {
            let mut changed = ast.clone();
            match replacement {
                Some(kind) => changed.statements[index].kind = kind,
                None => {
                    changed.statements.remove(index);
                }
            }
            // Equal changes of one statement are numbered, so that each mutant has its own name.
            let earlier = found.iter().filter(|other: &&Mutant| {
                let other = &other.mutation;
                other.statement == name && other.base_change() == change
            });
            let change = match earlier.count() {
                0 => change,
                count => format!("{change} #{}", count + 1),
            };
            let mutation = Mutation {
                statement: name.to_owned(),
                file: file_name(&source.name),
                line: statement.span.line,
                change,
                clauses: statement.clauses.clone(),
            };
            let changed = model.with_ast(changed);
            // Some changes are not valid models, for example a set instead of a relation.
            if changed.can_compile() {
                found.push(Mutant { mutation, model: changed });
            }
        };
        match &statement.kind {
            StatementKind::Let(bindings) => {
                for (position, binding) in bindings.bindings.iter().enumerate() {
                    for ChangedExpression { change, expression } in
                        expression_changes(&binding.body, &ast.sources)
                    {
                        let mut bindings = bindings.clone();
                        bindings.bindings[position].body = Arc::new(expression);
                        add(&binding.name.text, change, Some(StatementKind::Let(bindings)));
                    }
                }
            }
            StatementKind::Axiom { kind, negated, is_flag: flag, body, name } => {
                let name_text =
                    name.as_ref().map_or_else(|| text_of(body.span, &ast.sources), |n| n.text.clone());
                add(&name_text, "dropped".to_owned(), None);
                for ChangedExpression { change, expression } in expression_changes(body, &ast.sources) {
                    let axiom = StatementKind::Axiom {
                        kind: *kind,
                        negated: *negated,
                        is_flag: *flag,
                        body: expression,
                        name: name.clone(),
                    };
                    add(&name_text, change, Some(axiom));
                }
            }
            StatementKind::Call { procedure, name, .. } => {
                add(&name.as_ref().unwrap_or(procedure).text, "dropped".to_owned(), None);
            }
            // A procedure is covered at its call sites.
            StatementKind::Procedure(_) => {}
        }
    }
    found
}

/// Returns the first of `tests` that distinguishes a mutant from its model; the model's verdicts are given
/// with the tests.
pub fn find_killing_test<'t, T>(
    mutant: &Model,
    tests: impl IntoIterator<Item = (T, &'t Test, &'t PredictionSummary)>,
    options: &PredictOptions,
) -> Option<(T, Difference)> {
    tests.into_iter().find_map(|(key, test, expected)| {
        // A test that the mutant cannot answer does not distinguish it.
        let summary = predict_summary(test, mutant, options).ok()?;
        Difference::compare(expected, &summary).map(|difference| (key, difference))
    })
}

/// An expression with one change.
struct ChangedExpression {
    change: String,
    expression: CatExpression,
}

/// Returns every change of an expression and of its subexpressions.
fn expression_changes(expression: &CatExpression, sources: &[SourceText]) -> Vec<ChangedExpression> {
    let mut changes = root_changes(expression, sources);
    for (index, child) in subexpressions_mut(&mut expression.clone().kind).into_iter().enumerate() {
        for ChangedExpression { change, expression: changed } in expression_changes(child, sources) {
            let mut changed_root = expression.clone();
            *subexpressions_mut(&mut changed_root.kind)[index] = changed;
            changes.push(ChangedExpression { change, expression: changed_root });
        }
    }
    changes
}

/// Returns the changes at the root of an expression: drops a case, condition or exception, or removes a
/// repetition.
fn root_changes(expression: &CatExpression, sources: &[SourceText]) -> Vec<ChangedExpression> {
    let text = |part: &CatExpression| text_of(part.span, sources);
    let with_kind =
        |kind: ExpressionKind| CatExpression { kind, span: expression.span, depth: expression.depth };
    // A list without one part; a list with one part becomes that part.
    let without_operand =
        |list: &[CatExpression], index: usize, make: fn(Vec<CatExpression>) -> ExpressionKind| {
            let mut rest = list.to_vec();
            rest.remove(index);
            if rest.len() == 1 { rest.remove(0) } else { with_kind(make(rest)) }
        };
    let mut found = Vec::new();
    let mut add =
        |change: String, expression: CatExpression| found.push(ChangedExpression { change, expression });
    match &expression.kind {
        ExpressionKind::Union(list) => {
            for (index, part) in list.iter().enumerate() {
                let change = format!("without the case `{}`", text(part));
                add(change, without_operand(list, index, ExpressionKind::Union));
            }
        }
        ExpressionKind::Intersection(list) => {
            for (index, part) in list.iter().enumerate() {
                let change = format!("without the condition `{}`", text(part));
                add(change, without_operand(list, index, ExpressionKind::Intersection));
            }
        }
        ExpressionKind::Difference(list) => {
            // The first operand is the minuend.
            for (index, part) in list.iter().enumerate().skip(1) {
                let change = format!("without the exception `{}`", text(part));
                add(change, without_operand(list, index, ExpressionKind::Difference));
            }
        }
        ExpressionKind::Sequence(list) => {
            for (index, part) in list.iter().enumerate() {
                match &part.kind {
                    ExpressionKind::Identity(_) => {
                        let change = format!("without the condition `{}`", text(part));
                        add(change, without_operand(list, index, ExpressionKind::Sequence));
                    }
                    ExpressionKind::Optional(_) => {
                        let change = format!("without the step `{}`", text(part));
                        add(change, without_operand(list, index, ExpressionKind::Sequence));
                    }
                    _ => {}
                }
            }
        }
        ExpressionKind::Product(pair) => {
            for (index, side) in pair.iter().enumerate() {
                if !matches!(side.kind, ExpressionKind::Universe) {
                    let mut wider = pair.clone();
                    wider[index].kind = ExpressionKind::Universe;
                    let side_name = if index == 0 { "source" } else { "target" };
                    let change = format!("`{}` with any {side_name}", text(expression));
                    add(change, with_kind(ExpressionKind::Product(wider)));
                }
            }
        }
        ExpressionKind::Optional(inner) => {
            add(format!("`{}` no longer optional", text(inner)), (**inner).clone())
        }
        ExpressionKind::Plus(inner) => add(format!("a single step `{}`", text(inner)), (**inner).clone()),
        ExpressionKind::Star(inner) => add(
            format!("at most one step `{}`", text(inner)),
            with_kind(ExpressionKind::Optional(inner.clone())),
        ),
        ExpressionKind::Zero
        | ExpressionKind::Universe
        | ExpressionKind::Name(_)
        | ExpressionKind::Complement(_)
        | ExpressionKind::Inverse(_)
        | ExpressionKind::Identity(_)
        | ExpressionKind::Call(..)
        | ExpressionKind::Let(..)
        | ExpressionKind::Try(_)
        | ExpressionKind::LinearOrder(_)
        | ExpressionKind::Comprehension(_) => {}
    }
    found
}

pub(crate) fn subexpressions_mut(kind: &mut ExpressionKind) -> Vec<&mut CatExpression> {
    match kind {
        ExpressionKind::Zero | ExpressionKind::Universe | ExpressionKind::Name(_) => Vec::new(),
        ExpressionKind::Union(list)
        | ExpressionKind::Intersection(list)
        | ExpressionKind::Difference(list)
        | ExpressionKind::Sequence(list)
        | ExpressionKind::Call(_, list) => list.iter_mut().collect(),
        ExpressionKind::Product(pair) | ExpressionKind::Try(pair) => pair.iter_mut().collect(),
        ExpressionKind::Complement(inner)
        | ExpressionKind::Inverse(inner)
        | ExpressionKind::Plus(inner)
        | ExpressionKind::Star(inner)
        | ExpressionKind::Optional(inner)
        | ExpressionKind::LinearOrder(inner)
        | ExpressionKind::Identity(inner) => vec![inner],
        ExpressionKind::Let(_, body) => vec![body],
        ExpressionKind::Comprehension(comprehension) => vec![&mut comprehension.body],
    }
}
