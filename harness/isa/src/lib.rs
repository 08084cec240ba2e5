//! An operational model of AMD GPUs for machine text.
//!
//! The compiler of a driver generates the code of a litmus test. [`parse`] reads it, and [`explore`] executes
//! it on an operational model of the GCN and RDNA memory system, in every interleaving and under every
//! placement. A reachable outcome that the memory model forbids is a defect of the compiler, or a wrong
//! assumption of the machine. Every answer lists its assumptions ([`FactTable`]). The model was not compared
//! with hardware.
//!
//! | module | idea |
//! |---|---|
//! | [`family`] | families and generations |
//! | [`text`], [`opcode`] | machine text as typed instructions; unknown ones are preserved as unknown |
//! | [`facts`] | the table of hardware facts, with source and confidence |
//! | [`question`] | questions and verdicts |
//! | `entry`, `wave`, `code` | symbolic execution of one wave |
//! | `machine`, `placement`, [`mod@explore`] | the memory system, placements of waves, and the exploration |
//! | `naive` | the same machine without any reduction: the oracle of the explorer |
//! | [`edit`], [`survivor`] | mutations of code to test the explorer, and the classes of equivalent ones |

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
pub use facts::{FactTable, Profile};
pub use family::{AmdFamily, Generation};
pub use question::{MachineQuestion, MachineVerdict};
pub use text::{MachineProgram, MachineTextError, parse};
