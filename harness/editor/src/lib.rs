//! Analysis of texts for editors, without files, clocks and protocols.
//!
//! [`test_problems`] and [`model_problems`] return the mistakes of litmus tests and cat models with corrections;
//! [`hover`] the meaning of a word; [`complete`] the words that are valid at a cursor; [`variations`] the same test with
//! another order, scope or storage class in an instruction. The language server and the
//! playground publish them, each in the positions of its protocol; here they are bytes of the text.

mod complete;
mod diagnose;
mod hover;
mod problem;
mod suggest;
mod vary;
pub mod words;

pub use complete::{Completion, ProposedWord, complete};
pub use diagnose::{labelled_problem, model_problems, test_problems};
pub use hover::{Meaning, hover};
pub use problem::{Correction, NewFile, Severity, TextProblem, offset_at, word_range};
pub use suggest::suggest;
pub use vary::{Variation, VariedPart, variations};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentLanguage {
    /// A litmus test of any dialect.
    Litmus,
    /// A model.
    Cat,
    /// A file of known failures.
    Expectations,
    /// A suite of tests.
    Suite,
    Stress,
    /// A case file: the inputs of a shader.
    Case,
    /// A shader, as source or as SPIR-V text.
    Shader,
}
