//! The cat language: the front end that turns a model's text into a [`Plan`] over sets and relations.

pub mod evaluate;
pub mod plan;
pub mod source;

pub use evaluate::{
    BaseProvider, MissingBase, Value, apply_node, base_value, evaluate, evaluate_group, holds,
};
pub use plan::{
    Axiom, AxiomKind, Base, Definition, Group, GroupId, Kind, NameId, Node, NodeId, Plan, Statement,
    StatementId,
};
pub use source::{Source, SourceId, Span};
