//! Machine code of litmus tests: which kernels a test has, what their text says, and what relaxing the test changes in it.
//!
//! This crate is pure: it makes SPIR-V ([`units`]) and reads text ([`Machine`]). Whoever talks to a driver stands between
//! the two.
//!
//! | module | idea |
//! |---|---|
//! | [`form`] | the kernels of a test: merged, a workgroup each, with references that may alias or not |
//! | [`machine`] | machine text line by line; what is none |
//! | [`align`](mod@align) | which instruction of the test a line comes from |
//! | [`order`] | whether what an order needs stands between two accesses |
//! | [`differ`] | how two machine codes differ |
//! | [`mod@question`] | a test, its kernels and their text as a question for the explorer (`isa`) |
//! | [`baseline`] | machine code as files to compare |
//! | [`trust`] | machine code with one instruction less, and whether the explorer notices |
//! | [`shrink`](mod@shrink) | the smallest test for which something still holds |

pub mod align;
pub mod baseline;
pub mod differ;
pub mod form;
pub mod machine;
mod normal;
pub mod order;
pub mod question;
pub mod shrink;
pub mod trust;

pub use align::{Alignment, LineSource, align};
pub use baseline::CodeBaseline;
pub use differ::CodeDifference;
pub use form::{Form, FormKernel, Role, Sizes, units};
pub use machine::{Dialect, Machine, NotMachineCode};
pub use question::{Kernels, NoQuestion, question};
pub use shrink::{Shrunk, shrink};
