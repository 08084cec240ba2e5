//! Mutants of a model: each differs from it in one place, so that a test which tells them apart exercises that place.

use std::sync::Arc;

use litmus::{Race, Test};

use crate::cat::ast::{Expression, ExpressionKind, StatementKind};
use crate::cat::source::{CatSpan, SourceText};
use crate::clauses::file_name;
use crate::{Model, Options, Summary, verdict};

/// One change of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The definition or axiom that is changed.
    pub statement: String,
    /// The file that it stands in.
    pub file: String,
    /// Its first line there, from 1.
    pub line: u32,
    /// What is changed: ``without the case `x` ``; with a number where a statement has several such places.
    pub change: String,
    /// The clauses that the statement cites.
    pub clauses: Vec<String>,
}

impl Mutation {
    /// The change without the number that tells equal ones of one statement apart.
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

/// How a test tells a mutant from its model, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// Race-free under both, and the allowed outcomes differ: a device can show it.
    Outcome,
    /// Race-free under the first alone.
    RacyUnderSecond,
    /// Race-free under the second alone.
    RacyUnderFirst,
    /// Racy under both (or undefined on another level), and the consistent executions differ.
    Executions,
}

impl Difference {
    /// How two verdicts on one test differ; `None` when they agree or one of them is not known.
    pub fn between(first: &Summary, second: &Summary) -> Option<Difference> {
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

/// The shipped models whose statements are changed, with the one file that is meant where others have been changed with another
/// model already.
pub const MUTATED: &[(&str, Option<&str>)] =
    &[("vulkan", None), ("vulkan-2024", Some("vulkan-visible-to.cat")), ("hsa", None)];

/// Of what kind an argument is that no program tells a mutant from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EquivalenceReason {
    /// What stands beside the condition relates nothing else, by the kinds of the sets and relations of the engine.
    Implied,
    /// Other cases, of the statement or of those that it goes into, hold the same pairs.
    Contained,
    /// What the change adds or takes away is taken away or added wherever the statement is used.
    Discarded,
    /// No program has such operations: the parser refuses them, or the engine makes none.
    Absent,
    /// Consistency and races do not use the statement; queries count it.
    Counted,
}

impl EquivalenceReason {
    /// All of them, in the order in which they are told.
    pub const ALL: [EquivalenceReason; 5] = [
        EquivalenceReason::Implied,
        EquivalenceReason::Contained,
        EquivalenceReason::Discarded,
        EquivalenceReason::Absent,
        EquivalenceReason::Counted,
    ];

    /// Its word in the list.
    pub fn word(self) -> &'static str {
        match self {
            EquivalenceReason::Implied => "implied",
            EquivalenceReason::Contained => "contained",
            EquivalenceReason::Discarded => "discarded",
            EquivalenceReason::Absent => "absent",
            EquivalenceReason::Counted => "counted",
        }
    }
}

/// A mutant that no search has told from its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unkilled {
    /// The model.
    pub model: &'static str,
    /// The definition or axiom that is changed.
    pub statement: &'static str,
    /// The change, as [`Mutation::change`] has it.
    pub change: &'static str,
    /// Why no program can tell the two apart; `None` where nobody has shown that.
    pub argument: Option<(EquivalenceReason, &'static str)>,
}

/// How far the mutants of the list were searched for a program that tells them apart, in words; and the list.
///
/// The list is data: `harness/model/clauses/unkilled.tsv`, a line a mutant.
pub fn unkilled() -> (&'static str, Vec<Unkilled>) {
    let mut lines = include_str!("../clauses/unkilled.tsv").lines();
    let bound = lines.next().unwrap_or_default();
    let entry = |line: &'static str| {
        let mut fields = line.split('\t');
        let (model, statement, change) = (fields.next()?, fields.next()?, fields.next()?);
        let word = fields.next()?;
        let reason = EquivalenceReason::ALL.into_iter().find(|reason| reason.word() == word);
        Some(Unkilled { model, statement, change, argument: reason.zip(fields.next()) })
    };
    (bound, lines.filter_map(entry).collect())
}

/// All mutants of a model that are models themselves. Where `only` says no to the name of a statement's file, its
/// statements are left as they are.
pub fn mutants(model: &Model, only: &dyn Fn(&str) -> bool) -> Vec<Mutant> {
    let ast = model.ast();
    let mut found = Vec::new();
    for (index, statement) in ast.statements.iter().enumerate() {
        let Some(source) = ast.sources.get(usize::from(statement.span.source.0)) else { continue };
        if !only(&source.name) {
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
            if changed.is_sound() {
                found.push(Mutant { mutation, model: changed });
            }
        };
        match &statement.kind {
            StatementKind::Let(bindings) => {
                for (position, binding) in bindings.bindings.iter().enumerate() {
                    for Variant { change, expression } in variants(&binding.body, &ast.sources) {
                        let mut bindings = bindings.clone();
                        bindings.bindings[position].body = Arc::new(expression);
                        add(&binding.name.text, change, Some(StatementKind::Let(bindings)));
                    }
                }
            }
            StatementKind::Axiom { kind, negated, flag, body, name } => {
                let name_text =
                    name.as_ref().map_or_else(|| text_of(body.span, &ast.sources), |n| n.text.clone());
                add(&name_text, "dropped".to_owned(), None);
                for Variant { change, expression } in variants(body, &ast.sources) {
                    let axiom = StatementKind::Axiom {
                        kind: *kind,
                        negated: *negated,
                        flag: *flag,
                        body: expression,
                        name: name.clone(),
                    };
                    add(&name_text, change, Some(axiom));
                }
            }
            StatementKind::Call { procedure, name, .. } => {
                add(&name.as_ref().unwrap_or(procedure).text, "dropped".to_owned(), None);
            }
            // What it demands counts where it is called.
            StatementKind::Procedure(_) => {}
        }
    }
    found
}

/// The first of `tests` that tells a mutant from its model, whose verdicts are given beside them.
pub fn killer<'t, T>(
    mutant: &Model,
    tests: impl IntoIterator<Item = (T, &'t Test, &'t Summary)>,
    options: &Options,
) -> Option<(T, Difference)> {
    tests.into_iter().find_map(|(key, test, expected)| {
        // What the mutant cannot answer does not tell it apart.
        let shown = verdict(test, mutant, options).ok()?;
        Difference::between(expected, &shown).map(|difference| (key, difference))
    })
}

/// An expression with one change.
struct Variant {
    change: String,
    expression: Expression,
}

/// The text at a place, on one line.
fn text_of(span: CatSpan, sources: &[SourceText]) -> String {
    let text = sources
        .get(usize::from(span.source.0))
        .and_then(|source| source.text.get(span.offset as usize..span.end_offset() as usize))
        .unwrap_or("");
    // Comments inside are no part of what is meant.
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("(*") {
        plain.push_str(before);
        rest = after.split_once("*)").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every change of an expression and of its parts.
fn variants(expression: &Expression, sources: &[SourceText]) -> Vec<Variant> {
    let mut found = own_variants(expression, sources);
    for (index, child) in children(&expression.kind).into_iter().enumerate() {
        for Variant { change, expression: changed } in variants(child, sources) {
            let mut whole = expression.clone();
            if let Some(slot) = child_mut(&mut whole.kind, index) {
                *slot = changed;
                found.push(Variant { change, expression: whole });
            }
        }
    }
    found
}

/// The changes of an expression itself: a case, a condition or an exception is dropped, or a repetition is cut.
fn own_variants(expression: &Expression, sources: &[SourceText]) -> Vec<Variant> {
    let text = |part: &Expression| text_of(part.span, sources);
    let with = |kind: ExpressionKind| Expression { kind, span: expression.span, depth: expression.depth };
    // A list with one part less; a list of one is that one.
    let without = |list: &[Expression], index: usize, make: fn(Vec<Expression>) -> ExpressionKind| {
        let mut rest = list.to_vec();
        rest.remove(index);
        if rest.len() == 1 { rest.remove(0) } else { with(make(rest)) }
    };
    let mut found = Vec::new();
    let mut add = |change: String, expression: Expression| found.push(Variant { change, expression });
    match &expression.kind {
        ExpressionKind::Union(list) => {
            for (index, part) in list.iter().enumerate() {
                let change = format!("without the case `{}`", text(part));
                add(change, without(list, index, ExpressionKind::Union));
            }
        }
        ExpressionKind::Intersection(list) => {
            for (index, part) in list.iter().enumerate() {
                let change = format!("without the condition `{}`", text(part));
                add(change, without(list, index, ExpressionKind::Intersection));
            }
        }
        ExpressionKind::Difference(list) => {
            for (index, part) in list.iter().enumerate().skip(1) {
                let change = format!("without the exception `{}`", text(part));
                add(change, without(list, index, ExpressionKind::Difference));
            }
        }
        ExpressionKind::Sequence(list) => {
            for (index, part) in list.iter().enumerate() {
                match &part.kind {
                    ExpressionKind::Identity(_) => {
                        let change = format!("without the condition `{}`", text(part));
                        add(change, without(list, index, ExpressionKind::Sequence));
                    }
                    ExpressionKind::Optional(_) => {
                        let change = format!("without the step `{}`", text(part));
                        add(change, without(list, index, ExpressionKind::Sequence));
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
                    add(change, with(ExpressionKind::Product(wider)));
                }
            }
        }
        ExpressionKind::Optional(inner) => {
            add(format!("`{}` no longer optional", text(inner)), (**inner).clone())
        }
        ExpressionKind::Plus(inner) => add(format!("a single step `{}`", text(inner)), (**inner).clone()),
        ExpressionKind::Star(inner) => {
            add(format!("at most one step `{}`", text(inner)), with(ExpressionKind::Optional(inner.clone())))
        }
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

pub(crate) fn children(kind: &ExpressionKind) -> Vec<&Expression> {
    match kind {
        ExpressionKind::Zero | ExpressionKind::Universe | ExpressionKind::Name(_) => Vec::new(),
        ExpressionKind::Union(list)
        | ExpressionKind::Intersection(list)
        | ExpressionKind::Difference(list)
        | ExpressionKind::Sequence(list)
        | ExpressionKind::Call(_, list) => list.iter().collect(),
        ExpressionKind::Product(pair) | ExpressionKind::Try(pair) => pair.iter().collect(),
        ExpressionKind::Complement(inner)
        | ExpressionKind::Inverse(inner)
        | ExpressionKind::Plus(inner)
        | ExpressionKind::Star(inner)
        | ExpressionKind::Optional(inner)
        | ExpressionKind::LinearOrder(inner)
        | ExpressionKind::Identity(inner) => vec![inner],
        ExpressionKind::Let(_, body) => vec![body],
        ExpressionKind::Comprehension(comprehension) => vec![&comprehension.body],
    }
}

/// The same part as [`children`] gives at `index`, to be replaced.
fn child_mut(kind: &mut ExpressionKind, index: usize) -> Option<&mut Expression> {
    match kind {
        ExpressionKind::Zero | ExpressionKind::Universe | ExpressionKind::Name(_) => None,
        ExpressionKind::Union(list)
        | ExpressionKind::Intersection(list)
        | ExpressionKind::Difference(list)
        | ExpressionKind::Sequence(list)
        | ExpressionKind::Call(_, list) => list.get_mut(index),
        ExpressionKind::Product(pair) | ExpressionKind::Try(pair) => pair.get_mut(index),
        ExpressionKind::Complement(inner)
        | ExpressionKind::Inverse(inner)
        | ExpressionKind::Plus(inner)
        | ExpressionKind::Star(inner)
        | ExpressionKind::Optional(inner)
        | ExpressionKind::LinearOrder(inner)
        | ExpressionKind::Identity(inner) => Some(inner),
        ExpressionKind::Let(_, body) => Some(body),
        ExpressionKind::Comprehension(comprehension) => Some(&mut comprehension.body),
    }
}
