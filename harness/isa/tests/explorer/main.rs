//! The explorer on machine text that RADV 25.0.7 emitted, on text that was made wrong, and on text that is none.
//!
//! `texts/FAMILY.txt` holds the code of the tests' kernels for exploring (see `bridge`), a block a kernel, without
//! encodings. `litmus/` holds tests that the corpus does not have.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bridge;
mod edits;
mod historic;
mod random;
mod sample;
mod verdicts;
