//! Refinement: whether every behaviour of one version of a kernel is one of another version.

mod refinement;

pub use refinement::{
    Counterexample, KernelVersion, Refinement, RefinementCoverage, RefinementQuery, refine, with_open_memory,
};
