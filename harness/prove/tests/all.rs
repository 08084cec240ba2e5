//! All tests of the crate, as one program.
mod kernels;
mod random;
mod solvers;

#[path = "../../analysis/tests/derivation.rs"]
mod derivation;
