//! Test synthesis from a model: minimal suites, and tests that distinguish two models.
//!
//! A [`Shape`] lists the accesses of a family's threads. A [`Telling`] adds the synchronization and the
//! placement of the threads, and has a strongest test, [`Telling::top`]. [`weakenings`] returns the weakening
//! steps of a test. [`minimal_below`] weakens a test while the model forbids the outcome of a race-free
//! program. A test that cannot be weakened further is minimal. [`distinguish`] searches the smallest test on
//! which two models differ, first among all small programs, then among weakenings of the shapes.

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
