//! Test oracle of the compiler from tests to SPIR-V.
//!
//! It starts from the words of a kernel and shares no code with the emitter. [`lift::verify`] reads a kernel
//! back to the memory events of its threads and compares them with the test, in the meaning that
//! [`shaders::effective_test`] gives it. [`check::check`] lists the validity rules that a module breaks,
//! including those that validators miss. Both check semantics with the compiler's table,
//! [`shaders::semantics`]. Its tests use invalid modules.
//!
//! Only tests and benchmarks use this crate.

pub mod check;
pub mod lift;
mod reader;
