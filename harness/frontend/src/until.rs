//! A deadline that the caller supplies as a predicate, since the front end has no clock.

use std::fmt;
use std::sync::Arc;

/// A predicate for the deadline, evaluated now and then on the analyzing thread.
#[derive(Clone)]
pub struct Until(Arc<dyn Fn() -> bool + Send + Sync>);

impl Until {
    /// Creates a deadline that has passed once `stop` returns true.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> Until {
        Until(Arc::new(stop))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0()
    }
}

impl fmt::Debug for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Until")
    }
}
