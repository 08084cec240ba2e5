//! Machine code of litmus tests: which kernels a test has, what their text says, and what relaxing the test changes in it.
//!
//! This crate is pure: it makes SPIR-V and reads text. Whoever talks to a driver stands between the two.

pub mod form;
pub mod specialise;

pub use form::{Form, FormError, Role, Sizes, Unit, units};
