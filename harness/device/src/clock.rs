//! Timeouts measured by the host's clock, because drivers may report a timeout too early.

use std::time::{Duration, Instant};

/// The pause after a driver reported a timeout too early.
const PAUSE: Duration = Duration::from_millis(1);

/// Repeats `wait` until it succeeds or the host's clock reaches `until`.
///
/// `wait` gets the remaining time, and returns true if the awaited event has occurred.
pub(crate) fn by_the_clock<E>(
    until: Option<Instant>,
    mut wait: impl FnMut(Duration) -> Result<bool, E>,
) -> Result<bool, E> {
    let left = || until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
    loop {
        if wait(left())? {
            return Ok(true);
        }
        if left().is_zero() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE.min(left()));
    }
}

#[cfg(test)]
mod tests {
    use plan::DeviceError;

    use super::*;

    /// A driver that immediately reports that one second has passed.
    #[test]
    fn early_timeouts_are_waited_out() {
        let waited = |until: Option<Instant>, comes: u32| {
            let mut asked = 0;
            let came = by_the_clock(until, |_| {
                asked += 1;
                Ok::<bool, DeviceError>(asked == comes)
            });
            (came.ok(), asked)
        };
        let day = Instant::now().checked_add(Duration::from_secs(86_400));
        for until in [day, None] {
            assert_eq!(waited(until, 3), (Some(true), 3));
        }
        assert_eq!(waited(Some(Instant::now()), 3), (Some(false), 1), "and no longer than that");
        let lost = by_the_clock(day, |_| Err(DeviceError::DeviceLost("here")));
        assert_eq!(lost, Err(DeviceError::DeviceLost("here")));
    }
}
