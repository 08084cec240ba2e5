//! The syntax tree of a model.

use super::options::Options;
use super::plan::AxiomKind;
use super::source::{CatSpan, SourceText};
use std::sync::Arc;

/// A model as read: includes are already in place.
#[derive(Clone, Debug)]
pub struct Model {
    /// The words or the string at the start of the file.
    pub name: Option<String>,
    /// What the first comment chooses.
    pub options: Options,
    /// The statements in the order of the text.
    pub statements: Vec<Statement>,
    /// The texts: the model's own first, then each included one.
    pub sources: Arc<[SourceText]>,
}

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: CatSpan,
    /// Clause ids from the comments at it.
    pub clauses: Vec<String>,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let … and …`
    Let(Bindings),
    /// `acyclic e as name` and its like.
    Axiom {
        /// What is demanded.
        kind: AxiomKind,
        /// Whether the opposite is demanded.
        negated: bool,
        /// Whether it only raises a flag.
        flag: bool,
        /// What it speaks of.
        body: Expression,
        /// The word after `as`.
        name: Option<Name>,
    },
    /// `procedure p(a, b) = … end`
    Procedure(Procedure),
    /// `call p(a, b) as name`
    Call {
        /// The procedure.
        procedure: Name,
        /// What its parameters stand for.
        arguments: Vec<Expression>,
        /// The word after `as`: the name of what the procedure demands.
        name: Option<Name>,
    },
}

/// Demands that have parameters, of herd's cat.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// What it is called.
    pub name: Name,
    /// Its parameters.
    pub parameters: Vec<Name>,
    /// Its statements.
    pub body: Vec<(StatementKind, CatSpan)>,
}

/// A name at its place.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: CatSpan,
}

/// The definitions of one `let`.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// Whether it is `let rec`.
    pub recursive: bool,
    /// The definitions joined by `and`.
    pub bindings: Vec<Binding>,
}

/// One definition.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What is defined.
    pub name: Name,
    /// The parameters of a function; `None` for a set or a relation.
    pub parameters: Option<Vec<Name>>,
    /// The right-hand side.
    pub body: Arc<Expression>,
}

/// An expression at its place.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it stands.
    pub span: CatSpan,
    /// How deep expressions nest in it.
    pub(crate) depth: u16,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// `0`
    Zero,
    /// `_`
    Universe,
    /// A name.
    Name(String),
    /// `a | b | …`
    Union(Vec<Expression>),
    /// `a & b & …`
    Intersection(Vec<Expression>),
    /// `a \ b \ …`
    Difference(Vec<Expression>),
    /// `a; b; …`
    Sequence(Vec<Expression>),
    /// `a * b`
    Product(Box<[Expression; 2]>),
    /// `~a`
    Complement(Box<Expression>),
    /// `a^-1`
    Inverse(Box<Expression>),
    /// `a+`
    Plus(Box<Expression>),
    /// `a*`
    Star(Box<Expression>),
    /// `a?`
    Optional(Box<Expression>),
    /// `[a]`
    Identity(Box<Expression>),
    /// `f(a, b)` or `f a`
    Call(Name, Vec<Expression>),
    /// `let … in e`
    Let(Box<Bindings>, Box<Expression>),
    /// `union(M in masks: e)` or `intersection(…)`
    Comprehension(Box<Comprehension>),
    /// `try e with f`: the second where the first has names that nobody knows.
    Try(Box<[Expression; 2]>),
    /// `linearisations(s, r)`: the total orders of a set, which is `0` where the set is empty in every program.
    LinearOrder(Box<Expression>),
}

/// A union or intersection over a family.
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// Whether the values are united; else intersected.
    pub union: bool,
    /// The names bound to each member.
    pub variables: Vec<Name>,
    /// What is iterated over.
    pub family: Iterated,
    /// The body.
    pub body: Expression,
}

/// What a comprehension iterates over.
#[derive(Clone, Debug)]
pub enum Iterated {
    /// `masks`, `classes`, or a mask, whose classes are meant.
    Named(Name),
    /// `{a, b}` or `{(a, b), (c, d)}`.
    Listed(Vec<(Vec<Expression>, CatSpan)>),
}

impl ExpressionKind {
    /// How deep expressions nest in the operands.
    pub(crate) fn inner_depth(&self) -> u16 {
        let deepest = |list: &[Expression]| list.iter().map(|inner| inner.depth).max().unwrap_or(0);
        match self {
            ExpressionKind::Zero | ExpressionKind::Universe | ExpressionKind::Name(_) => 0,
            ExpressionKind::Union(list)
            | ExpressionKind::Intersection(list)
            | ExpressionKind::Difference(list)
            | ExpressionKind::Sequence(list)
            | ExpressionKind::Call(_, list) => deepest(list),
            ExpressionKind::Product(pair) | ExpressionKind::Try(pair) => deepest(pair.as_slice()),
            ExpressionKind::LinearOrder(inner)
            | ExpressionKind::Complement(inner)
            | ExpressionKind::Inverse(inner)
            | ExpressionKind::Plus(inner)
            | ExpressionKind::Star(inner)
            | ExpressionKind::Optional(inner)
            | ExpressionKind::Identity(inner) => inner.depth,
            ExpressionKind::Let(bindings, body) => {
                bindings.bindings.iter().map(|binding| binding.body.depth).fold(body.depth, u16::max)
            }
            ExpressionKind::Comprehension(comprehension) => {
                let members = match &comprehension.family {
                    Iterated::Named(_) => 0,
                    Iterated::Listed(members) => {
                        members.iter().map(|(member, _)| deepest(member)).max().unwrap_or(0)
                    }
                };
                members.max(comprehension.body.depth)
            }
        }
    }
}
