//! What the crate promises, on records made by hand.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod fixture;
mod folder;
mod judging;
mod lines;
mod report;
mod schema;
