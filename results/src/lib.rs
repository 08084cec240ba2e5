//! Verdicts on observations, their statistics, published records and report formats.
//!
//! [`judge()`] compares an observation with a prediction; [`rejudge`] judges a published record by a new
//! prediction. [`statistics`] computes intervals and tests on counts, [`wire`] has the published record
//! types, [`write`] the report formats, [`journal`] and [`folder`] the files on disk. The crate is
//! independent of devices and does not parse models.
//!
//! ```
//! use litmus::{Observation, Outcome, PredictedOutcome, Prediction, Race, Value};
//! use results::{Ending, Evidence, judge};
//! use results::wire::{RunContext, VerdictWord};
//!
//! let test = litmus::Test::new("SB", litmus::Dialect::Vulkan);
//! let mut prediction = Prediction { race: Race::Free, complete: true, ..Prediction::default() };
//! let (zero, one) = (Outcome(vec![Value(0)]), Outcome(vec![Value(1)]));
//! for (outcome, allowed) in [(zero.clone(), false), (one, true)] {
//!     let predicted = PredictedOutcome { allowed, weak: !allowed, serial: false, filtered: false, thin_air: false };
//!     prediction.outcomes.insert(outcome, predicted);
//! }
//! let mut observation = Observation { dispatches: 1, ..Observation::default() };
//! observation.histogram.add_count(zero, 3);
//! let evidence = Evidence::new(&test, &prediction, &observation, &Ending::Finished);
//! assert_eq!(judge(&evidence, RunContext::default()).verdict, VerdictWord::Violates);
//! ```

#![warn(missing_docs)]

pub mod answer;
pub mod bench;
mod checksum;
pub mod conclusion;
pub mod diff;
pub mod difference;
pub mod drift;
pub mod escape;
pub mod expectation;
pub mod journal;
pub mod judge;
pub mod mutants;
pub mod number;
pub mod portability;
pub mod power;
pub mod read;
mod reason;
pub mod rejudge;
pub mod report;
pub mod state;
pub mod statistics;
pub mod wire;

// Folders of results and formats of reports: WebAssembly has no files.
#[cfg(not(target_family = "wasm"))]
pub mod baseline;
#[cfg(not(target_family = "wasm"))]
pub mod folder;
#[cfg(not(target_family = "wasm"))]
pub mod merge;
#[cfg(not(target_family = "wasm"))]
pub mod write;
#[cfg(target_family = "wasm")]
pub mod write {
    //! The texts of answers.
    pub mod change;
    pub mod race;
}

pub use answer::{Answer, answer_question};
pub use checksum::sources_hash;
pub use judge::{
    Ending, Evidence, EvidenceCheck, Twin, describe_excess, describe_misread, describe_weak_violations,
    is_weak_violation, judge, weigh_violation,
};
pub use reason::Reason;
