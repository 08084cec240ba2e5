//! The asking: runs litmus tests on a device and counts outcomes.
//!
//! [`run`] dispatches the kernel of one test until its budget is used and gives back an [`litmus::Observation`] in which
//! every instance is accounted for. It knows no model. [`Stress`] says how a test is spread; every parameter is drawn
//! from one seed. [`pool`] does that in worker processes under a deadline, which call [`worker::serve`] and speak
//! [`wire`]. [`progress`] asks which loops end, [`shader`] runs shaders of users. [`twin`] relaxes a test, so that what the device shows says what the test could have seen. [`canary`] tells a device that
//! executes nothing. [`classic`] and [`native`] are what rates are compared with.

mod affinity;
mod calibration;
mod calls;
pub mod canary;
pub mod classic;
mod classify;
mod company;
mod count;
mod draw;
mod drawn;
mod error;
mod exercise;
mod host;
mod join;
mod mark;
mod memory;
pub mod native;
mod overlap;
pub mod pool;
mod processor;
pub mod progress;
mod run;
mod runnable;
pub mod shader;
mod stress;
mod stretches;
pub mod tune;
pub mod twin;
mod variant;
mod ways;
pub mod wire;
pub mod worker;

pub use classify::Classify;
pub use error::{Cause, RunError};
pub use exercise::{Exercise, Parts};
pub use join::{Join, UnknownJoin};
pub use memory::subgroups;
pub use run::{Budget, Progress, Settings, run, run_program};
pub use runnable::{Runnable, hash, told};
pub use stress::{Graphics, Lanes, MemoryStress, Pairing, Pattern, Strategy, Stress, StressError, Unit};
pub use variant::{UnknownVariant, Variant};
pub use ways::{Known, Way, run_ways};
