//! The tests of the crate, linked as one program. Helper modules are last.

mod drivers;
mod hosts;
mod listing;
mod order;
mod select;

#[expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
mod support;
