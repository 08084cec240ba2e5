//! Tests of parts of the engine by themselves.
#![expect(clippy::unwrap_used, reason = "tests")]

mod budget;
mod cells;
mod conflict;
mod guarantee;
mod iterative_deepening;
mod liveness;
mod model;
mod semantics;
mod storage_values;
mod symmetry;
