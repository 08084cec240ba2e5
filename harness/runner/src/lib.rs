//! The asking: runs litmus tests on a device and counts outcomes.
//!
//! [`run`] dispatches the kernel of one test until its budget is used and gives back an [`litmus::Observation`] in which
//! every instance is accounted for. It knows no model. [`Stress`] says how a test is spread; every parameter is drawn
//! from one seed.

mod count;
mod draw;
mod error;
mod memory;
mod run;
mod stress;
pub mod twin;

pub use error::{Cause, RunError};
pub use run::{Budget, Progress, Settings, run};
pub use stress::{Pairing, Stress, StressError};
