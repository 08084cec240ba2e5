//! Test campaigns: selects tests and devices, runs them in worker processes and judges the results. Each
//! command of the program is one function with typed arguments and results.
//!
//! [`inputs`] finds tests, [`targets`] finds devices, and [`models`] loads models. [`workers`] builds
//! the commands of worker processes. [`measure`] runs short trials, [`compile_worker`] runs a device's
//! compiler in a worker, and [`compilers`] analyses its output. [`check`] returns the answer of a model;
//! [`shader`] compiles and interprets user shaders.
//!
//! No function here prints: messages go to a [`targets::MessageSink`].

pub mod check;
pub mod compile_worker;
pub mod compilers;
pub mod contained_path;
pub mod cts;
pub mod expectations;
pub mod explain_records;
mod failure;
pub mod fault_injection;
pub mod faults;
pub mod files;
pub mod forms;
pub mod gtest;
pub mod inputs;
pub mod kinds;
pub mod measure;
pub mod models;
mod observer;
pub mod parallel;
pub mod probe;
pub mod recorded_contents;
pub mod rejudge;
pub mod repro;
pub mod run;
pub mod run_log;
pub mod shader;
pub mod shard;
pub mod source;
pub mod targets;
pub mod temporary;
pub mod time_limit;
pub mod workers;

pub use failure::{CommandOutcome, Failure, NotAvailable};
pub use litmus::similar;
