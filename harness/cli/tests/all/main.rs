//! What the command line promises, by running it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod beside;
mod cases;
mod clauses;
mod codegen;
mod common;
mod compilers;
mod corpus;
mod cts;
mod dispatch;
mod docs;
mod expect;
mod faulty;
mod findings;
mod glsl;
mod gtest;
mod inputs;
mod instructions;
mod jobs;
mod kernel;
mod kills;
mod kinds;
mod ledger;
mod library;
mod lint;
mod patterns;
mod progress;
mod rates;
mod readme;
mod reports;
mod repro;
mod run;
mod sim;
mod sites;
mod source;
mod terminal;
