//! Integration tests of the front end, as one program: one file per subject, helpers last.

mod answers;
mod findings;
mod grids;
mod happens_before;
mod inputs;
mod kernels;
mod outcomes;
mod peers;
mod refused;
mod sampler;
mod suspicion;
mod transformations;
mod vector_clock;
