//! Abstract syntax tree of a cat model.

use super::options::ModelOptions;
use super::plan::AxiomKind;
use super::source::{CatSpan, SourceText};
use std::sync::Arc;

/// A parsed model with its includes.
#[derive(Clone, Debug)]
pub struct CatModel {
    /// The words or the string at the start of the file.
    pub name: Option<String>,
    /// The options of the first comment.
    pub options: ModelOptions,
    /// The statements in the order of the text.
    pub statements: Vec<Statement>,
    /// The texts: the model's own first, then each included one.
    pub sources: Arc<[SourceText]>,
}

#[derive(Clone, Debug)]
pub struct Statement {
    /// The statement itself.
    pub kind: StatementKind,
    /// Source location of the statement.
    pub span: CatSpan,
    /// Clause ids from its comments.
    pub clauses: Vec<String>,
}

/// A statement of a cat model.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let … and …`
    Let(Bindings),
    /// An axiom or a flag, such as `acyclic e as name`.
    Axiom {
        /// The constraint on the body.
        kind: AxiomKind,
        /// True if the constraint is negated.
        negated: bool,
        /// True if it only raises a flag.
        is_flag: bool,
        /// The constrained set or relation.
        body: CatExpression,
        /// The word after `as`.
        name: Option<Identifier>,
    },
    /// `procedure p(a, b) = … end`
    Procedure(Procedure),
    /// `call p(a, b) as name`
    Call {
        procedure: Identifier,
        /// The arguments, one for each parameter.
        arguments: Vec<CatExpression>,
        /// The word after `as`: the name of the axiom that the call states.
        name: Option<Identifier>,
    },
}

/// A parameterized axiom of herd's cat.
#[derive(Clone, Debug)]
pub struct Procedure {
    pub name: Identifier,
    pub parameters: Vec<Identifier>,
    pub body: Vec<(StatementKind, CatSpan)>,
}

/// A name with its position.
#[derive(Clone, Debug)]
pub struct Identifier {
    pub text: String,
    /// Source location of the name.
    pub span: CatSpan,
}

/// The definitions of one `let`.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// True if it is `let rec`.
    pub is_recursive: bool,
    /// The definitions joined by `and`.
    pub bindings: Vec<CatDefinition>,
}

#[derive(Clone, Debug)]
pub struct CatDefinition {
    pub name: Identifier,
    /// The parameters of a function; `None` for a set or a relation.
    pub parameters: Option<Vec<Identifier>>,
    pub body: Arc<CatExpression>,
}

/// An expression with its position.
#[derive(Clone, Debug)]
pub struct CatExpression {
    /// The expression itself.
    pub kind: ExpressionKind,
    /// Source location of the expression.
    pub span: CatSpan,
    /// Nesting depth of the expression.
    pub(crate) depth: u16,
}

/// An expression over sets and relations.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// `0`
    Zero,
    /// `_`
    Universe,
    Name(String),
    /// `a | b | …`
    Union(Vec<CatExpression>),
    /// `a & b & …`
    Intersection(Vec<CatExpression>),
    /// `a \ b \ …`
    Difference(Vec<CatExpression>),
    /// `a; b; …`
    Sequence(Vec<CatExpression>),
    /// `a * b`
    Product(Box<[CatExpression; 2]>),
    /// `~a`
    Complement(Box<CatExpression>),
    /// `a^-1`
    Inverse(Box<CatExpression>),
    /// `a+`
    Plus(Box<CatExpression>),
    /// `a*`
    Star(Box<CatExpression>),
    /// `a?`
    Optional(Box<CatExpression>),
    /// `[a]`
    Identity(Box<CatExpression>),
    /// `f(a, b)` or `f a`
    Call(Identifier, Vec<CatExpression>),
    /// `let … in e`
    Let(Box<Bindings>, Box<CatExpression>),
    /// `union(M in masks: e)` or `intersection(…)`
    Comprehension(Box<Comprehension>),
    /// `try e with f`: `f` if `e` contains an unknown name.
    Try(Box<[CatExpression; 2]>),
    /// `linearisations(s, r)`: the total orders of a set; `0` if the set is empty in every program.
    LinearOrder(Box<CatExpression>),
}

/// A union or intersection over a family.
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// True if the values are united; else intersected.
    pub is_union: bool,
    /// The names bound to each member.
    pub variables: Vec<Identifier>,
    /// The family that is iterated over.
    pub family: ComprehensionFamily,
    pub body: CatExpression,
}

/// The domain of a comprehension.
#[derive(Clone, Debug)]
pub enum ComprehensionFamily {
    /// `masks`, `classes`, or a mask, which selects its classes.
    Named(Identifier),
    /// `{a, b}` or `{(a, b), (c, d)}`.
    Listed(Vec<(Vec<CatExpression>, CatSpan)>),
}

impl ExpressionKind {
    /// Returns the nesting depth of the operands.
    pub(crate) fn inner_depth(&self) -> u16 {
        let deepest = |list: &[CatExpression]| list.iter().map(|inner| inner.depth).max().unwrap_or(0);
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
                    ComprehensionFamily::Named(_) => 0,
                    ComprehensionFamily::Listed(members) => {
                        members.iter().map(|(member, _)| deepest(member)).max().unwrap_or(0)
                    }
                };
                members.max(comprehension.body.depth)
            }
        }
    }
}
