//! All tests of the crate, as one program.
mod kernels;
mod random;

#[path = "../../analysis/tests/derivation.rs"]
mod derivation;
