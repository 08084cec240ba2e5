//! Test campaigns: selects tests and devices, runs them in worker processes and judges the results. Each
//! command of the program is one function with typed arguments and results.
//!
//! [`inputs`] finds tests, [`targets`] finds devices, and [`choice`] selects the model. [`workers`] builds
//! the commands of worker processes. [`measure`] runs short trials on a device, [`compiling`] runs a device's
//! compiler in a worker, and [`compilers`] analyses its output. [`check`] returns the answer of a model;
//! [`shader`] compiles and interprets user shaders.
//!
//! No function here prints: messages go to a [`targets::Tell`].

pub mod again;
pub mod book;
pub mod certificates;
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
pub mod source;
pub mod targets;
mod watch;
pub mod within;
pub mod workers;

pub use answers::similar;
pub use failure::{CommandOutcome, Failure, NotAvailable};
