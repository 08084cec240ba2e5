//! An independent implementation of the Vulkan memory model: judges a litmus test clause by clause.
//!
//! It shares no code with the crate `model` and reads no cat file: events, relations and search are written from the
//! text of the specification as plain loops over small sets. It is deliberately slow: every
//! control-flow path, every source of every read and every modification order is tried. Tests compare the engine with it.
//!
//! It refuses unsupported features by name ([`UnsupportedTest`]): vectors, cooperative accesses, and order from the
//! language of the host.
//!
//! ```
//! use witness::{Races, SearchBounds, TextProfile, judge};
//!
//! let test = litmus::parse(
//!     r#"VULKAN MP
//! { x = 0; f = 0; }
//! P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0                    ;
//! st.nonpriv.sc0 x, 1            | ld.atom.acq.dv.sc0.semsc0.semvis r0, f ;
//! st.atom.rel.dv.sc0.semsc0.semav f, 1 | bne r0, 1, LC00                  ;
//!                                | ld.nonpriv.sc0 r1, x                   ;
//!                                | LC00:                                  ;
//! exists (P1:r0 == 1 /\ P1:r1 == 0)"#,
//!     "MP",
//! )
//! .map_err(|errors| errors.to_string())?;
//! let answer = judge(&test, TextProfile::LATEST, &SearchBounds::default()).map_err(|refusal| refusal.to_string())?;
//! assert_eq!(answer.races, Races::Never);
//! assert_eq!(answer.outcomes.len(), 2);
//! # Ok::<(), String>(())
//! ```

mod answer;
mod domain;
mod execution;
pub mod generate;
mod happens;
pub mod hosts;
mod instances;
mod operation;
mod path;
mod profile;
mod refusal;
mod sections;
mod tangle;
mod thread_path;
mod values;

use litmus::Test;

pub use answer::{Races, SearchBounds, WitnessAnswer};
pub use profile::{AppendixVersion, TextProfile};
pub use refusal::UnsupportedTest;

/// Judges a test by a profile of the specification.
///
/// # Errors
///
/// A test that is unsupported or too large.
pub fn judge(
    test: &Test,
    profile: TextProfile,
    options: &SearchBounds,
) -> Result<WitnessAnswer, UnsupportedTest> {
    execution::judge(test, profile, options)
}
