//! Recordings of Vulkan programs: the layer that writes them, and their reader.
//!
//! [`layer`] starts a program with the recording layer (`layer/record.c`), a shared library that this crate embeds. The layer
//! writes a journal of events per process, and the inputs of dispatches as case files. [`journal`] reads the journals, [`timeline`] puts their
//! commands in order, and [`hazards`] finds accesses without order, [`redundancy`] barriers
//! that order none.
//!
//! The layer records the calls of the program, not its own: the copies and barriers that it adds to command buffers are not in the
//! journal. The recorded run is more ordered than the program, so its contents are those of one possible run.

pub mod barrier_groups;
pub mod bindings;
pub mod contents;
pub mod hazard;
pub mod hazards;
pub mod journal;
pub mod layer;
mod layouts;
mod ownership;
pub mod redundancy;
mod scopes;
pub mod timeline;
