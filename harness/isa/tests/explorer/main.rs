//! The explorer on machine text that RADV 25.0.7 emitted, on text that was made wrong, and on text that is none.
//!
//! `texts/FAMILY.txt` holds the code of the tests' kernels for exploring (`codegen::form`), a block a kernel, without
//! encodings. `litmus/` holds tests that the corpus does not have.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dispatches;
mod edits;
mod historic;
mod oracle;
mod random;
mod sample;
mod verdicts;
