//! The tests of the kernels, in one program: one file for each subject, then helpers.

mod check;
mod classify;
mod contract;
mod corpus;
mod identity;
mod kernels;
mod matrix;
mod program;
mod progress;
mod refused;
mod split;
mod stages;
mod stress;
mod subgroup;
mod variants;
mod vectors;

#[expect(clippy::unwrap_used, reason = "helpers of tests")]
mod common;
mod machine;
mod random;
