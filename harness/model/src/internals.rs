//! Parts of the engine that the tests of this crate examine by themselves.

pub use crate::cells::{AccessPiece, CellPartition, Extent};
pub use crate::conflict::has_only_ordered_accesses;
pub use crate::explore::ExplorationStrategy;
pub use crate::guarded::{EncodedAnswer, decide_by_encoding};
pub use crate::liveness::{live_registers, strongly_live_registers};
pub use crate::path::{ThreadPath, enumerate_paths};
pub use crate::predict::{find_allowed_outcomes, predict_with_strategy};
pub use crate::progress::{ProgressSemantics, ThreadStatus, decide_termination, machine_outcomes};
pub use crate::storage_values::stored_values;
pub use crate::symmetry::{ThreadSwap, find_swaps};
pub use crate::system::TestFeatures;
pub use solver::{BudgetTracker, STOP_POLL_INTERVAL};
