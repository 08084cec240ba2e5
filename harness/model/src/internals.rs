//! Parts of the engine that the tests of this crate examine by themselves.

pub use crate::budget::{BudgetTracker, STOP_POLL_INTERVAL};
pub use crate::cells::{Cells, Extent, Piece};
pub use crate::conflict::has_only_ordered_accesses;
pub use crate::explore::ExplorationStrategy;
pub use crate::liveness::live_registers;
pub use crate::path::{Path, PathChoice, paths};
pub use crate::predict::predict_with_strategy;
pub use crate::progress::{ProgressSemantics, ThreadStatus, decide_termination};
pub use crate::stored::stored_values;
pub use crate::supply::ValueSupply;
pub use crate::symmetry::Symmetry;
pub use crate::system::TestFeatures;
pub use crate::wait::SpinLoopReduction;
