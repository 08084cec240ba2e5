//! A simulated GPU: executes SPIR-V on an operational machine with weak memory, soundly or with an injected
//! fault.
//!
//! [`SimDevice`] implements the device interface of the crate `plan`, as Vulkan devices do. It runs the same
//! SPIR-V words that a Vulkan driver gets. It needs no driver, behaves the same on every host, and derives
//! all choices from a seed. It serves as the device on hosts without a GPU and as an independent witness that
//! shares no code with model or translation. With a [`Fault`] it measures which bugs a test suite finds.
//!
//! # The machine
//! Invocations are the leaves of a tree of incoherent caches: invocation, subgroup, workgroup, queue family,
//! device; memory is the root. A cache line belongs to one *reference* (a variable of the module), so
//! accesses through two references to one location meet only in memory. A program runs in order and issues
//! its memory operations to a window. The window performs them out of order as far as the memory model allows
//! (`order`). Availability operations flush lines towards memory; visibility operations drop clean lines.
//! Both act up to the level of their scope and on the storage classes that they name. Atomics execute at the
//! level of their scope. Caches prefetch, write back and evict spontaneously.
//!
//! The machine is sound: every outcome that it produces is one that the Vulkan memory model (specification,
//! appendix "Memory Model") allows, unless a fault is injected. It is not complete: it need not produce every
//! allowed outcome.
//!
//! | module | idea |
//! |---|---|
//! | `legalize` | the entry point without calls, in the form that lowering requires |
//! | `module`, `lower`, `program` | a SPIR-V module as flat operations on registers, 64 invocations in lockstep |
//! | `order` | preserved program order of the memory operations of an invocation |
//! | `memory` | cache lines, and the operations that move them |
//! | `store_buffer` | atomic stores that become visible to some invocations first |
//! | `read_ahead` | atomic loads that execute before branches and narrow acquires |
//! | `wave` | 64 invocations in lockstep and their operations in flight |
//! | `machine` | the scheduler: every choice from one seed |
//! | `device` | the device interface |
//! | `device::rasterize` | shaded invocations of a draw: vertices, points, fragments in quads |
//! | `host` | host threads, their caches and the host domain |
//! | `progress`, `machine::progress_scheduler` | progress models as schedulers |
//! | `fault` | the rules that can be broken |
//!
//! An iteration (a *round*) of a kernel's outermost loop ends for all invocations before the next one begins
//! for any. Devices may schedule like this, and it makes the threads of a test overlap. All lanes of a wave
//! share some choices: the independent unit is a round, not an instance.

mod device;
mod fault;
mod host;
mod instruction;
mod legalize;
mod limits;
mod lower;
mod machine;
mod memory;
mod miscompile;
mod module;
mod order;
mod program;
mod progress;
mod random;
mod wave;

pub use device::SimDevice;
pub use fault::{ExpectedEffect, FAULTS, Fault, Row, UnknownFault};
pub use instruction::LoadError;
pub use progress::{ProgressGuarantee, ProgressModel, UnknownProgressModel};
