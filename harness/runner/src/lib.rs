//! Runs litmus tests on a device and counts outcomes.
//!
//! [`run`] dispatches the kernel of one test until its budget is used, and returns an [`litmus::Observation`]
//! that accounts for every instance. It does not depend on a memory model. [`Stress`] controls the layout of
//! dispatches; every parameter is drawn from one seed.
//!
//! [`pool`] runs jobs in worker processes with deadlines. A worker calls [`worker::serve`] and exchanges
//! [`wire`] messages. [`progress`] runs forward-progress tests, and [`shader`] runs user shaders. [`twin`]
//! relaxes a test, to measure whether the device could have shown a violation. [`canary`] detects devices
//! that execute nothing. [`classic`] and [`native`] are baselines for rates.

mod affinity;
mod calibration;
mod calls;
pub mod canary;
pub mod classic;
mod classify;
mod company;
mod count;
mod counting;
mod dispatch;
mod draw;
mod drawn;
mod error;
mod exercise;
mod host;
mod initial;
mod join;
mod mark;
mod memory;
pub mod memory_limit;
pub mod native;
mod overlap;
pub mod pool;
mod processor;
pub mod progress;
mod readback;
mod run;
mod runnable;
mod seed;
mod settings;
pub mod shader;
mod store_buffering;
mod stress;
mod stretches;
pub mod tune;
pub mod twin;
mod variant;
mod ways;
pub mod wire;
pub mod worker;

pub use counting::Classify;
pub use error::{Cause, RunError};
pub use exercise::{Exercise, Parts};
pub use join::{Join, UnknownJoin};
pub use memory::subgroups;
pub use run::{RunProgress, run, run_program};
pub use runnable::{Runnable, hash, told};
pub use seed::{test_seed, text_hash};
pub use settings::{RunBudget, RunSettings};
pub use stress::{Graphics, Lanes, MemoryStress, Pairing, Pattern, Strategy, Stress, StressError, Unit};
pub use variant::{RunVariant, RunVariantError};
pub use ways::{Known, PartialRun, RunMechanisms, SpreadPart, run_ways};
