//! The simulated GPU against tests and models: what it shows is allowed, what it should show it shows, what is broken is
//! found.

mod common;
mod corpus;
mod device;
mod faults;
mod random;
