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
mod completion_marker;
mod contention;
mod count;
mod counting;
mod dispatch;
mod error;
mod exercise;
mod graphics_draw;
mod guards;
mod host;
mod host_copy;
mod initial;
mod interval_counts;
mod join;
mod mechanisms;
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
mod sampling;
mod seed;
mod settings;
pub mod shader;
mod store_buffering;
mod stress;
pub mod tune;
pub mod twin;
mod variant;
pub mod wire;
pub mod worker;

pub use counting::CountingPlace;
pub use error::{Cause, RunError};
pub use exercise::{ContentionTimeShares, ExerciseCriterion};
pub use join::{Join, UnknownJoin};
pub use mechanisms::{PartialRun, RunMechanisms, RunMetadata, SpreadPart, run_mechanisms};
pub use memory::subgroup_requirements;
pub use run::{RunProgress, run, run_program};
pub use runnable::{Runnable, compile_for_device, hash_kernels};
pub use seed::{repeat_seed, test_seed, text_hash};
pub use settings::{RunBudget, RunSettings};
pub use stress::{
    GraphicsLayout, LaneUnit, Lanes, MemoryStress, Pairing, Pattern, Stress, StressError, TargetAssignment,
};
pub use variant::{RunVariant, RunVariantError};
