//! The machine text of AMD's GPUs, and what it can do to memory.
//!
//! A driver's compiler hands out the code that it made of a litmus test. [`parse`] reads it, and [`explore`] executes it on
//! an operational model of the GCN and RDNA memory system, in every interleaving and under every placement. What comes out
//! that the memory model forbids is a finding about the compiler or about an assumption of the machine; which ones were
//! believed is part of every answer ([`Facts`]). Nothing here was observed on hardware.
//!
//! | module | idea |
//! |---|---|
//! | [`family`] | families and generations |
//! | [`text`], [`opcode`] | machine text as typed instructions; what is unknown stays unknown |
//! | `aco` | the hardware program that ACO prints where there is no disassembler |
//! | [`facts`] | the table of hardware facts, with source and grade |
//! | [`question`] | what is asked and answered |
//! | `entry`, `wave`, `code` | one wave executed as far as it does not rest on memory |
//! | `machine`, `placement`, [`mod@explore`] | the memory system, where waves run, every interleaving |
//! | `naive` | the same machine without anything that saves work: the oracle of the explorer |
//! | [`edit`], [`survivor`] | one instruction deleted or one bit dropped, to test the explorer itself; why it may not matter |

mod aco;
pub mod alu;
mod code;
pub mod edit;
mod entry;
pub mod explore;
pub mod facts;
pub mod family;
mod machine;
#[cfg(any(test, feature = "testing"))]
pub mod naive;
pub mod opcode;
mod placement;
pub mod question;
pub mod survivor;
pub mod text;
mod wave;

pub use explore::explore;
pub use facts::{Facts, Profile};
pub use family::{AmdFamily, Generation};
pub use question::{MachineQuestion, MachineVerdict};
pub use text::{MachineProgram, MachineTextError, parse};
