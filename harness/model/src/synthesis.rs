//! Tests written from a model: minimal suites, and tests that tell two models apart.
//!
//! A [`Shape`] says what the threads of a family access; a [`Telling`] adds how synchronization is told and where the threads
//! run, and has a strongest test, [`Telling::top`]. [`weakenings`] are the steps down from a test. [`minimal_below`] walks
//! down while the model forbids the outcome of a race-free program: what cannot be weakened further is minimal.
//! [`distinguish`] looks for the smallest test on which two models differ, first among all small programs, then among
//! what lies below the shapes.

mod distinguish;
mod draft;
mod enumerate;
mod minimal;
mod shape;
mod weaken;

pub use distinguish::{Distinction, Wanted, distinguish, distinguish_all, expectation, pool, reduced};
pub use enumerate::{LARGEST, Vocabulary};
pub use minimal::{Below, Minimal, TestStanding, minimal_below, standing_of};
pub use shape::{SHAPES, Shape, Style, Telling, operations, placements};
pub use weaken::{Weakened, weakenings};
