//! Tests of parts of the engine by themselves.
#![expect(clippy::unwrap_used, reason = "tests")]

mod budget;
mod cells;
mod conflict;
mod growing;
mod liveness;
mod model;
mod promise;
mod semantics;
mod stored;
mod supply;
mod symmetry;
mod wait;
