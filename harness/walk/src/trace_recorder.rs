//! The recorded steps of chosen invocations.

use litmus::StorageClass;
use results::wire::TraceRecord;
use spirv_reader::SourcePosition;

use super::happens_before::Epoch;

/// Upper bound on the steps of a trace.
pub(super) const MAX_STEPS: usize = 20_000;

/// The steps of a walk so far.
#[derive(Clone, Debug)]
pub(super) struct TraceRecorder {
    /// The name of the module's file, for steps without a source.
    pub file: String,
    /// The numbers of the invocations.
    pub numbers: Vec<u32>,
    /// The instructions of the finding.
    pub sites: Vec<u32>,
    pub trace: TraceRecord,
    /// The position of the last step in the module.
    pub last_place: (u32, SourcePosition),
    /// The accesses of each invocation with their steps.
    pub accesses: [Vec<(usize, StorageClass, Epoch)>; 2],
    pub is_done: bool,
}
