//! A kernel as litmus tests.

use std::collections::BTreeSet;

use litmus::Test;

use crate::value::NumberDomain;
use entry_point::layout::MemoryCell;
use entry_point::question::ResolvedQuestion;
use entry_point::{InvocationId, LiftFinding, Spot};

/// A kernel as litmus tests.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The name of the entry point.
    pub entry: String,
    /// One test for each choice of unspecified values; usually one.
    pub cases: Vec<LiftedCase>,
    /// True if other choices of unspecified values are possible.
    pub is_sampled: bool,
    /// The invocations, in thread order.
    pub invocations: Vec<InvocationId>,
    pub subgroup_size: u32,
    /// The defects found while lifting.
    pub findings: Vec<LiftFinding>,
    /// The question as its author wrote it.
    pub question: Option<String>,
    /// Assumptions made while reading the module.
    pub notes: Vec<String>,
}

/// A litmus test of a kernel for one choice of unspecified values.
#[derive(Clone, Debug)]
pub struct LiftedCase {
    pub test: Test,
    /// The source position of each instruction, by thread.
    pub origins: Vec<Vec<Spot>>,
    /// The source name of each location.
    pub names: Vec<String>,
    /// The cell of each location.
    pub cells: Vec<MemoryCell>,
    /// The finding for each suspicion mark, valid if some execution reaches the mark.
    pub suspicions: Vec<LiftFinding>,
    /// The values that each location may hold.
    pub domains: Vec<NumberDomain>,
    /// The locations that hold values without a symbolic representation.
    pub opaque: BTreeSet<MemoryCell>,
}

/// The entry point, its invocations and the question, which all tests of a kernel share.
pub(crate) struct LiftedEntry<'a> {
    pub name: &'a str,
    pub function: u32,
    pub invocations: &'a [InvocationId],
    pub question: &'a ResolvedQuestion,
}
