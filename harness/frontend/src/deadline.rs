//! A deadline that the caller supplies as a predicate, since the front end has no clock.

use std::fmt;
use std::sync::Arc;

/// A predicate for the deadline, evaluated now and then on the analyzing thread.
#[derive(Clone)]
pub struct DeadlinePredicate(Arc<dyn Fn() -> bool + Send + Sync>);

impl DeadlinePredicate {
    /// Creates a deadline that has passed once `stop` returns true.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> DeadlinePredicate {
        DeadlinePredicate(Arc::new(stop))
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.0()
    }
}

impl fmt::Debug for DeadlinePredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Until")
    }
}
