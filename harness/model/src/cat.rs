#![doc = include_str!("cat/reference.md")]

pub mod ast;
mod compile;
pub mod error;
pub mod evaluate;
mod graph;
mod layout;
mod lexer;
mod load;
pub mod options;
mod parser;
pub mod plan;
mod prelude;
pub mod source;
mod specialize;
pub mod vocabulary;

pub use ast::Model;
pub use compile::compile;
pub use error::{CatError, CatErrors, CatProblem};
pub(crate) use evaluate::apply_to;
pub use evaluate::{
    BaseProvider, MissingBase, Value, apply_node, base_value, evaluate, evaluate_group, holds,
};
pub(crate) use load::NAMES_OF_HERD;
pub use load::parse;
pub(crate) use load::with_uninitialised_reads;
pub use options::Options;
pub use plan::{
    Axiom, AxiomKind, Base, CompiledModel, Definition, Group, GroupId, NameId, Node, NodeId, NodeKind,
    NodeLabel, Size, Statement, StatementId,
};
pub use source::{CatSpan, SourceId, SourceText};
pub(crate) use specialize::{Known, specialize};
pub use vocabulary::{Families, Membership, Vocabulary};
