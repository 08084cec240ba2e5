//! The clock of whoever asks the models: the models have none, and are told when to stop.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// An answer may take as long by the wall as this many times its processor time, so that a busy machine changes none.
const WALL: u32 = 4;

/// Says stop once the calling thread has used so much of a processor, or four times as much time is over. Asked on the
/// thread that made it.
pub fn patience(time: Duration) -> impl Fn() -> bool + Sync {
    let (used, since) = (processor_time(), Instant::now());
    move || {
        let over = since.elapsed();
        // The wall is read first: no more of a processor is used than it says.
        over >= time && (over >= time.saturating_mul(WALL) || processor_time().saturating_sub(used) >= time)
    }
}

/// What the thread has used of a processor.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_over_at_once_and_something_is_not() {
        assert!(patience(Duration::ZERO)());
        assert!(!patience(Duration::from_secs(3600))());
        // Whatever a sleeping thread uses of a processor, the wall ends it.
        let stop = patience(Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(20));
        assert!(stop());
    }
}
