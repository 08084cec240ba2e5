//! Limits of long computations as callbacks.

use std::sync::Arc;

/// A function that returns true once a limit is reached.
pub type StopFunction = Arc<dyn Fn() -> bool + Send + Sync>;
