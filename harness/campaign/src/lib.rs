//! Campaigns: which tests are meant and which devices, and what is asked of them in worker processes.
//!
//! [`inputs`] finds tests, [`targets`] devices; [`choice`] says which model answers; [`workers`] builds the command of every
//! worker process. What a device shows in short trials is [`measure`]d, and what its compiler makes of kernels is told by
//! [`compiling`]. Nothing here prints: what people should know is handed to a [`targets::Tell`].

pub mod book;
pub mod choice;
pub mod compiling;
pub mod cts;
pub mod expect;
mod failure;
pub mod inputs;
pub mod kinds;
pub mod measure;
pub mod misbehave;
pub mod parallel;
pub mod patience;
pub mod probe;
pub mod run;
pub mod shard;
pub mod similar;
pub mod source;
pub mod targets;
pub mod workers;

pub use failure::{Failure, NotAvailable};
