//! Test oracle of the compiler from tests to SPIR-V.
//!
//! It starts from the words of a kernel and shares no code with the emitter. [`lift::verify`] reads a kernel
//! back to the memory events of its threads and compares them with the test, in the meaning that
//! [`shaders::effective_test`] gives it.
//!
//! Only tests and benchmarks use this crate.

pub mod lift;
mod reader;
