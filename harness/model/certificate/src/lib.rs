//! Certificates of a model's answer about one litmus test, and their checker.
//!
//! A [`Certificate`] has the texts of the test and of the model, the event structures of the test, an
//! execution for each allowed outcome and each raised flag, and a proof that no other execution exists.
//! [`verify`] checks all of it with a parser of cat (`cat`) and an evaluator of relations (`plan`) that share
//! no code with the `model` crate, and without a solver.
//!
//! **Proofs.** The choices of an execution are the source of each read and the order of each two writes to
//! one location. A step of a proof states that executions with certain choices need no further search: an
//! axiom is violated, their outcomes are listed as allowed, or they raise no flag of a group. Axioms and
//! flags are evaluated on lower and upper bounds of each relation. A step of the kind [`ProofStep::Read`] or
//! [`ProofStep::Pair`] combines one step for each alternative of a choice, as resolution does. A claim is proved
//! by a step without choices.
//!
//! **Trusted.** The checker takes from the certificate: the event structures, with their base sets and
//! relations, stored values, path constraints and forced sources, and the claim that these structures are all
//! of the test. It relies on `litmus` for the filter of the test, arithmetic and comparisons. A reader with
//! the `model` crate derives the structures again from the text of the test and compares them.
//!
//! **Rechecked.** `po` is a transitive order within threads; `int`, `ext` and `loc` agree with the threads
//! and storages; the halves of read-modify-writes access one location. The checker derives the candidates of
//! a read (all writes to its location except its own), the bounds of `co`, the values of reads, and the
//! outcomes.
//!
//! **Bounds.** The proof covers executions within the loop bound of the certificate. Values that depend on
//! themselves are limited to the certificate's domain and a few values that the program computes from it, as
//! in the `model` crate. Other such values prove nothing about devices: none is known to show them.

mod cat;
mod format;
mod plan;
mod relation;
mod values;
mod verify;

pub use format::{
    AllowedOutcome, Certificate, EventStructure, ExecutionChoice, FlagClaim, FlagGroup, ModelText, NamedSet,
    ObservedValue, PathConstraint, ProofStep, ProvedClaim, SCHEMA, StructureProof, ValueExpression,
    WitnessExecution,
};
pub use values::{CertainOrder, find_outcomes};
pub use verify::{CertificateError, CertificateSize, verify};
