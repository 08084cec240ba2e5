//! The tests of what speaks to Vulkan, in one program: a file a subject, helpers last.

mod drivers;
mod hosts;
mod listing;
mod order;
mod select;

#[expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
mod support;
