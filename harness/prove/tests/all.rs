//! All tests of the crate, as one program.
mod kernels;
mod random;
