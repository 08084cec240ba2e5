//! When whoever asks has waited long enough: the front end has no clock, and is told.

use std::fmt;
use std::sync::Arc;

/// What says that time is up; asked now and then on the thread that walks.
#[derive(Clone)]
pub struct Until(Arc<dyn Fn() -> bool + Send + Sync>);

impl Until {
    /// Time is up once `stop` says so.
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
