//! The explorer on machine code from RADV 25.0.7, on faulty code, and on text that is not machine code.
//!
//! `texts/FAMILY.txt` has the code of the tests' kernels (`codegen::form`), one block per kernel, without
//! encodings. `litmus/` has tests that are not in the corpus.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dispatches;
mod edits;
mod historic;
mod oracle;
mod random;
mod sample;
mod verdicts;

#[path = "../../../analysis/tests/derivation.rs"]
mod derivation;
