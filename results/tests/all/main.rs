//! Integration tests of the crate, on hand-built records.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod coverage;
mod diffs;
mod fixture;
mod folder;
mod herd;
mod judging;
mod lines;
mod merging;
mod read;
mod report;
mod schema;
