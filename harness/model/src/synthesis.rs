//! Test synthesis: minimal suites, and tests that distinguish two models.
//!
//! A [`LitmusShape`] lists the accesses of a litmus family. A [`ShapeVariant`] adds the synchronization style and the
//! placement of threads, and has a strongest test, [`ShapeVariant::strongest_test`]. [`weaken_test`] returns the single
//! weakening steps of a test. [`find_minimal_tests`] descends while the outcome of the race-free test is
//! forbidden; tests without a forbidden weakening are minimal. [`find_distinctions`] searches all small programs
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
    Distinction, TestConstraints, collect_comparison_tests, expectation_from_verdict, find_distinctions,
    reduce_distinction, smaller_tests,
};
pub use enumerate::{FormVocabulary, MAX_PROGRAM_SIZE};
pub use minimal::{ConditionVerdict, MinimalTest, MinimalTests, classify_condition, find_minimal_tests};
pub use shape::{LitmusShape, SHAPES, ShapeVariant, SynchronizationStyle, count_operations, placements};
pub use weaken::{WeakenedTest, weaken_test};
