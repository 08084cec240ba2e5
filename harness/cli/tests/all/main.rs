//! What the command line promises, by running it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod cases;
mod clauses;
mod common;
mod corpus;
mod cts;
mod inputs;
mod progress;
mod rates;
mod readme;
mod run;
mod sim;
