//! The modules of the library; `src/main.rs` and the folders next to it are the program.

pub mod check;
pub mod error;
pub mod inputs;
pub mod model;
#[cfg(feature = "cli")]
pub mod program;
pub mod race;
pub mod results;
pub mod shader;
pub mod shader_test;
pub mod simulation;
pub mod test;
pub mod wire;
