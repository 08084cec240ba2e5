//! Litmus tests for GPU memory models: syntax tree, parsers, printers and corpus.
//!
//! This crate defines the types that all other crates share: the [`Test`] (the only syntax tree of the
//! project), conditions, outcomes, predictions and observations. It also has the parsers and printers of
//! every surface syntax, and the corpus. It performs no input or output, is independent of devices and
//! models, and depends on no other crate of the project.
//!
//! ```
//! let text = r"VULKAN MP+rel-acq
//! expect: vulkan forbidden free
//! { x = 0; y = 0; }
//!  P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0             ;
//!  st.av.dv.sc0 x, 1              | ld.atom.acq.dv.sc0.semsc0 r0, y ;
//!  st.atom.rel.dv.sc0.semsc0 y, 1 | bne r0, 1, LC00                 ;
//!                                 | ld.vis.dv.sc0 r1, x             ;
//!                                 | LC00:                           ;
//! exists (P1:r0 == 1 /\ P1:r1 == 0)";
//! let test = litmus::parse(text, "MP+rel-acq.litmus")?;
//! assert_eq!(test.name, "MP+rel-acq");
//! assert_eq!(test.threads[1].instructions.len(), 4);
//! let printed = litmus::print(&test);
//! assert_eq!(litmus::parse(&printed, "printed")?, test);
//! # Ok::<(), litmus::ParseErrors>(())
//! ```
//!
//! Terms follow the Vulkan memory-model appendix and the herd tools; `GLOSSARY.md` lists them.

#![warn(missing_docs)]

mod comparison;
pub mod condition;
pub mod convert;
pub mod corpus;
pub mod cts;
pub mod error;
pub mod glsl;
pub mod hsa;
pub mod khronos;
pub mod metadata;
pub mod minimize;
pub mod outcome;
pub mod overlap;
pub mod schedule;
pub mod similar;
pub mod span;
pub mod subgroup;
pub mod suite;
pub mod syntax;
pub mod system;
pub mod tangle;
pub mod test;
pub mod value;
mod warnings;

pub use comparison::Comparison;
pub use condition::{Condition, Question, QuestionKind, Term};
pub use error::{CallError, KhronosError, ParseError, ParseErrors, SubgroupError, TangledKind};
pub use hsa::{LoweredTest, LoweringError, lower_to_vulkan};
pub use khronos::{Khronos, QueryKind, QueryTerm, SatisfiabilityLine};
pub use metadata::{Expectation, Metadata, Reachability, TerminationExpectation};
pub use outcome::{
    Batches, ConditionSide, Histogram, Observable, Observation, Outcome, PredictedOutcome, Prediction, Race,
    ResolvedCondition, Undefinedness, evaluate_condition,
};
pub use overlap::Overlap;
pub use schedule::{
    ApiCalls, DependencyScopes, FenceWait, HostCall, Schedule, ScheduledItem, ScheduledQueue,
};
pub use span::Span;
pub use subgroup::{QuadDirection, SUBGROUP_ARITHMETIC, SubgroupKind, SubgroupOperation, SubgroupSpan};
pub use suite::Suite;
pub use syntax::{
    IgnoredWord, Keyword, MAX_THREADS, ParseOptions, ignored_words, order_keyword, parse, parse_condition,
    parse_with, print,
};
pub use system::{Interlock, InterlockEnd, InterlockOrder, SystemOperation};
pub use tangle::{BlockPart, GuardedBlock, TangleInstance, TangledLane};
pub use test::{
    Access, AccessKind, ArithmeticOperation, BarrierSemantics, Components, Compute, ControlBarrier, Dialect,
    Flow, Id, Instruction, InstructionKind, Label, LabelId, Location, LocationId, LocationInit, MemoryAccess,
    MemoryPlace, NoEntry, Operand, Performer, Placement, Reference, Register, RegisterId, RegisterInit,
    RmwOperation, ScalarType, SplitBarrier, SplitHalf, SyncPoint, SystemSync, Table, Test, Thread, ThreadId,
    ThreadPlace, UNDEFINED_BYTE,
};
pub use value::Value;
pub use vocabulary::{
    AccessMask, IgnoredClass, IgnoredClasses, Order, Scope, Semantics, StageMask, StorageClass,
    StorageClassSet, closed_enum,
};
pub use warnings::{TextWarning, text_warnings};
