//! The SPIR-V front end: reads the modules of users and lifts their kernels to litmus tests.
//!
//! [`read`] takes a module in words or as text; [`lift`] walks the invocations of a grid through a kernel and gives a
//! [`litmus::Test`] that a model answers.

mod access;
pub mod annotations;
mod answer;
mod arithmetic;
mod assemble;
mod atomic;
mod emit;
mod error;
mod execute;
mod fork;
pub mod inputs;
mod layout;
mod lift;
mod mend;
mod module;
mod opcode;
mod order;
mod question;
mod state;
mod text;
mod value;
mod walk;
mod word;

pub use annotations::parse_formula;
pub use answer::{Answer, Asking, RaceSpot, answer};
pub use error::{Place, Problem, Refusal};
pub use lift::{Case, DEFAULT_UNROLL, Finding, FindingKind, Identity, Lifted, Options, Spot, lift};
pub use mend::{Change, Lack, Mended, lack, mend};
pub use module::{Module, SourceLine, read};
pub use text::{Assembled, assemble};
