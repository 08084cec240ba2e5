//! Time by the clock: what a driver says of it may be wrong.

use std::time::{Duration, Instant};

/// How long to leave a driver alone that said too early that the time was over.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until the clock says that the time is over, whatever the one that waits says of it. `wait` has so long, and says whether what it
/// waits for has come.
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

    /// A driver that says at once that a second is over.
    #[test]
    fn a_time_that_is_over_too_early_is_waited_for() {
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
