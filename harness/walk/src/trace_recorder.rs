//! The recorded steps of chosen invocations.

use entry_point::InvocationId;
use litmus::StorageClass;
use spirv_reader::SourcePosition;

use super::happens_before::Epoch;

/// Upper bound on the steps of a trace.
pub(super) const MAX_STEPS: usize = 20_000;

/// The steps up to a finding, in the order of the schedule.
#[derive(Clone, Debug, Default)]
pub struct FindingTrace {
    /// The invocations that are followed: one or two.
    pub invocations: Vec<InvocationId>,
    pub steps: Vec<FindingStep>,
    /// True if steps are missing at the end.
    pub is_cut_off: bool,
}

/// Consecutive instructions of one invocation on one line.
#[derive(Clone, Debug)]
pub struct FindingStep {
    /// The index of the invocation in [`FindingTrace::invocations`].
    pub invocation: usize,
    /// Index of the source line in the module; 0 if unknown.
    pub line: u32,
    pub place: SourcePosition,
    pub effects: Vec<StepEffect>,
    /// The last step of the other invocation whose accesses happen before this one.
    pub seen: Option<usize>,
}

/// A change or a read of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEffect {
    /// A variable of the invocation gets a value.
    Variable {
        name: String,
        value: String,
    },
    /// A read of shared memory.
    Read {
        element: String,
        value: String,
    },
    /// A write or an atomic update of shared memory.
    Write {
        element: String,
        before: String,
        after: String,
    },
    /// The invocation waits at a barrier or a subgroup operation.
    Wait,
    End,
}

/// The steps of a walk so far.
#[derive(Clone, Debug)]
pub(super) struct TraceRecorder {
    /// The numbers of the invocations.
    pub numbers: Vec<u32>,
    /// The instructions of the finding.
    pub sites: Vec<u32>,
    pub trace: FindingTrace,
    /// The accesses of each invocation with their steps.
    pub accesses: [Vec<(usize, StorageClass, Epoch)>; 2],
    pub is_done: bool,
}
