//! The simulated GPU against tests and models: what it shows is allowed, what it should show it shows, what is broken is
//! found.
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
mod stages;
mod stress;
mod tangles;
