//! Tests of the simulated GPU against the models: its outcomes are allowed, weak outcomes occur, and faults
//! are detected.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod calls;
mod common;
mod corpus;
mod device;
mod faults;
mod peers;
mod phases;
mod progress;
mod random;
mod spread;
mod stages;
mod stress;
mod tangles;
