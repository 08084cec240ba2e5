//! A monotonic clock for code that also runs on targets without one.
//!
//! `std::time::Instant` panics on WebAssembly without an operating system. There, no time passes: every
//! limit on time is unlimited, and callers need a limit on instances or steps.

use std::time::Duration;

/// A reading of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    #[cfg(not(target_family = "wasm"))]
    instant: std::time::Instant,
}

impl Timestamp {
    /// Reads the clock.
    pub fn now() -> Timestamp {
        Timestamp {
            #[cfg(not(target_family = "wasm"))]
            instant: std::time::Instant::now(),
        }
    }

    /// Returns the time since this reading.
    pub fn elapsed(&self) -> Duration {
        #[cfg(not(target_family = "wasm"))]
        return self.instant.elapsed();
        #[cfg(target_family = "wasm")]
        return Duration::ZERO;
    }
}
