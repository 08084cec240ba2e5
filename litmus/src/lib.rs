//! The question: litmus tests for GPU memory models.
//!
//! This crate is the shared vocabulary. It holds the [`Test`] (the only syntax tree of the project), conditions,
//! outcomes, predictions and observations, the parsers and printers of every surface syntax, and the corpus.
//! It performs no input or output, knows no GPU and no model, and depends on nothing else of the project.
//!
//! Words follow the Vulkan memory-model appendix and the herd tools; `GLOSSARY.md` lists them.

pub mod condition;
pub mod corpus;
pub mod error;
pub mod metadata;
pub mod outcome;
pub mod overlap;
pub mod span;
pub mod suite;
pub mod syntax;
pub mod test;
pub mod value;

pub use condition::{Comparison, Condition, Question, QuestionKind, Term};
pub use error::{ParseError, ParseErrors};
pub use metadata::{Expectation, Metadata, Reachability};
pub use outcome::{
    Histogram, Observable, Observation, Outcome, PredictedOutcome, Prediction, Race, Undefinedness,
    decided,
};
pub use overlap::Overlap;
pub use span::Span;
pub use suite::Suite;
pub use syntax::{ParseOptions, parse, parse_condition, parse_with, print};
pub use test::{
    Access, ArithmeticOperation, BarrierSemantics, BranchRelation, ControlBarrier, Dialect, Instruction,
    InstructionKind, Label, LabelId, Location, LocationId, LocationInit, Operand, Order, Place, Placement,
    Reference, Register, RegisterId, RegisterInit, RmwOperation, ScalarType, Scope, Semantics, StorageClass,
    StorageClassSet, SyncPoint, SystemSync, Test, Thread, ThreadId,
};
pub use value::Value;
