//! Machine code of litmus tests: its kernels, their disassembly, and the effect of relaxing the test.
//!
//! This crate is pure: it makes SPIR-V ([`form_kernels`]) and reads text ([`Disassembly`]). The caller runs the
//! driver in between.
//!
//! | module | idea |
//! |---|---|
//! | [`form`] | the kernels of a test: merged, split, with references that may alias or not |
//! | [`disassembly`] | machine text line by line, and the refusal of other text |
//! | [`align`](mod@align) | maps lines to instructions of the test |
//! | [`order`] | checks that the fences and waits of an order are between two accesses |
//! | [`differ`] | compares two machine codes |
//! | [`mod@question`] | a test, its kernels and their text as a question for the explorer (`isa`) |
//! | [`baseline`] | machine code as files to compare |
//! | [`mutation_test`] | mutation test of the explorer: machine code with one instruction or bit removed |
//! | [`shrink`](mod@shrink) | the smallest test with a given property |

pub mod align;
pub mod baseline;
pub mod differ;
pub mod disassembly;
pub mod form;
pub mod mutation_test;
mod normalize;
pub mod order;
pub mod question;
pub mod shrink;

pub use align::{Alignment, ExpectedAccess, LineSource, align, align_module};
pub use baseline::CodeBaseline;
pub use differ::CodeDifference;
pub use disassembly::{Disassembly, NotMachineCode};
pub use form::{Form, FormKernel, KernelSizes, MemoryRole, form_kernels};
pub use question::{CompiledKernels, UnmodelledFeature, machine_question};
pub use shrink::{Reduction, shrink};
