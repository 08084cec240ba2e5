//! The tests of kernels, linked as one program. Helper modules are last.

mod canary;
mod checksum;
mod classify;
mod contract;
mod corpus;
mod forms;
mod identity;
mod kernels;
mod matrix;
mod program;
mod progress;
mod refusals;
mod row_table;
mod shape;
mod split;
mod stages;
mod stress;
mod subgroup;
mod variant_words;
mod variants;
mod vectors;
mod viewport;

#[expect(clippy::unwrap_used, reason = "helpers of tests")]
mod common;
mod machine;
mod random;
