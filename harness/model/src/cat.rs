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
mod suggestions;
pub mod vocabulary;

pub use ast::CatModel;
pub use compile::compile;
pub use error::{CatError, CatErrors, CatProblem};
pub(crate) use evaluate::apply_node_with;
pub use evaluate::{
    BaseProvider, CatValue, MissingBase, apply_node, axiom_holds, evaluate_base, evaluate_group,
    evaluate_model,
};
pub(crate) use load::HERD_ORDERS_FILE;
pub use load::parse_model;
pub(crate) use load::with_uninitialised_reads;
pub use options::ModelOptions;
pub use plan::{
    Axiom, AxiomKind, BaseReference, CompiledModel, Definition, GroupId, NameId, NodeId, NodeKind, NodeLabel,
    PlanNode, RecursionGroup, SizeConstraint, StatementId, StatementSource,
};
pub use source::{CatSpan, SourceId, SourceText};
pub(crate) use specialize::{KnownBase, specialize_plan};
pub use vocabulary::{ClassFamilies, Membership, Vocabulary};
