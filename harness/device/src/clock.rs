//! Timeouts measured by the host's clock, because drivers may report a timeout too early.

use std::time::{Duration, Instant};

/// The pause after a driver reported a timeout too early.
const PAUSE: Duration = Duration::from_millis(1);

/// Repeats `wait` until it succeeds or the host's clock reaches `until`.
///
/// `wait` gets the remaining time, and returns true if the awaited event has occurred.
pub(crate) fn wait_until<E>(
    deadline: Option<Instant>,
    mut wait: impl FnMut(Duration) -> Result<bool, E>,
) -> Result<bool, E> {
    let remaining =
        || deadline.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
    loop {
        if wait(remaining())? {
            return Ok(true);
        }
        if remaining().is_zero() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE.min(remaining()));
    }
}

#[cfg(test)]
mod tests {
    use plan::DeviceError;

    use super::*;

    /// A driver that immediately reports that one second has passed.
    #[test]
    fn early_timeouts_are_waited_out() {
        let wait_with = |until: Option<Instant>, ready_at: u32| {
            let mut attempts = 0;
            let occurred = wait_until(until, |_| {
                attempts += 1;
                Ok::<bool, DeviceError>(attempts == ready_at)
            });
            (occurred.ok(), attempts)
        };
        let day = Instant::now().checked_add(Duration::from_secs(86_400));
        for until in [day, None] {
            assert_eq!(wait_with(until, 3), (Some(true), 3));
        }
        assert_eq!(wait_with(Some(Instant::now()), 3), (Some(false), 1), "one attempt after the deadline");
        let lost = wait_until(day, |_| Err(DeviceError::DeviceLost("here")));
        assert_eq!(lost, Err(DeviceError::DeviceLost("here")));
    }
}
