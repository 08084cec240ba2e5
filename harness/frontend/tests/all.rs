//! Integration tests of the front end, as one program: one file per subject, helpers last.

mod answers;
mod findings;
mod grids;
mod kernels;
mod outcomes;
mod peers;
mod refused;
mod transformations;
