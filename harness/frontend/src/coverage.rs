//! What a report covers: the chosen inputs, and the limits of its answer.

use entry_point::FindingKind;

/// A limit of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageLimit {
    /// An assumption or restriction of the walk.
    Note(String),
    /// Source lines that no invocation reached, as ranges.
    Unreached(String),
    /// A finding with another grid than the assumed one.
    WiderGrid(WiderGridFinding),
    /// Every workgroup does the same, and the grid is not given.
    OneWorkgroup,
    /// The search for grids in which positions coincide was cut off.
    GridSearchCutOff,
}

/// A finding with another grid than the assumed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiderGridFinding {
    /// The grid, as an option or in words.
    pub grid: String,
    pub kind: FindingKind,
    /// The accessed element; empty if none is known.
    pub element: String,
    pub message: String,
}

/// The model that decided every execution where the walk was incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingModel {
    pub name: String,
    /// Number of invocations in the litmus test.
    pub invocations: usize,
}
