//! Tests of the models and their engine, linked as one program. Helper modules are last.

mod agreement;
mod bounds;
mod cat_errors;
mod cat_models;
mod cat_values;
mod clauses;
mod corpus;
mod cts;
mod disagreements;
mod equivalent_forms;
mod eval;
mod explain;
mod herd;
mod hsa;
mod languages;
mod lowering;
mod peers;
mod progress;
mod queries;
mod relation_laws;
mod strategies;
mod synthesis;
mod texts;
mod units;
mod waiting;

mod whole_program;
mod witness;

mod common;
mod hsa_oracle;
mod mutant_programs;
#[expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
mod oracle;
#[path = "../../../litmus/tests/round_trip/hsa.rs"]
mod random;
mod vocabulary;
