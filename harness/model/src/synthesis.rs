//! Test synthesis: minimal suites, and tests that distinguish two models.
//!
//! A [`LitmusShape`] lists the accesses of a litmus family. A [`Telling`] adds the synchronization style and the
//! placement of threads, and has a strongest test, [`Telling::top`]. [`weakenings`] returns the single
//! weakening steps of a test. [`minimal_below`] descends while the outcome of the race-free test is
//! forbidden; tests without a forbidden weakening are minimal. [`distinguish`] searches all small programs
//! first, then the tests below the shapes.
//!
//! Cf. Lustig et al., "Automated Synthesis of Comprehensive Memory Model Litmus Test Suites" (ASPLOS 2017),
//! <https://doi.org/10.1145/3037697.3037723>.

mod distinguish;
mod draft;
mod enumerate;
mod minimal;
mod shape;
mod weaken;

pub use distinguish::{
    Distinction, TestConstraints, distinguish, distinguish_all, expectation, pool, reduced,
};
pub use enumerate::{FormVocabulary, LARGEST};
pub use minimal::{Below, Minimal, TestStanding, minimal_below, standing_of};
pub use shape::{LitmusShape, SHAPES, Style, Telling, operations, placements};
pub use weaken::{Weakened, weakenings};
