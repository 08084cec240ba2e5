//! Campaigns: which tests are meant and which devices, and what is asked of them in worker processes; and whatever else is asked of
//! the whole, a call for each command, with a typed request and answer.
//!
//! [`inputs`] finds tests, [`targets`] devices; [`choice`] says which model answers; [`workers`] builds the command of every
//! worker process. What a device shows in short trials is [`measure`]d, what its compiler makes of kernels is told by
//! [`compiling`] and asked about by [`compilers`]. What a model says is [`check`]ed; [`shader`]s of users are compiled and walked over.
//! Nothing here prints: what people should know is handed to a [`targets::Tell`].

pub mod again;
pub mod book;
pub mod check;
pub mod choice;
pub mod compilers;
pub mod compiling;
pub mod cts;
pub mod expect;
mod failure;
pub mod faults;
pub mod gtest;
pub mod inputs;
pub mod kinds;
pub mod measure;
pub mod misbehave;
pub mod parallel;
pub mod patience;
pub mod probe;
pub mod reasons;
pub mod repro;
pub mod run;
pub mod shader;
pub mod shard;
pub mod similar;
pub mod source;
pub mod targets;
pub mod workers;

pub use failure::{Conclusion, Failure, NotAvailable};
