//! The clock of whoever asks the models: the models have none, and are told when to stop.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// An answer may take as long by the wall as this many times its processor time, so that a busy machine changes none.
const WALL: u32 = 4;

/// Says stop once the calling thread has used so much of a processor, or four times as much time is over; where the system does
/// not tell what a thread has used, once the time is over. Asked on the thread that made it.
pub fn patience(time: Duration) -> impl Fn() -> bool + Send + Sync {
    let (used, since) = (processor_time(), Instant::now());
    move || {
        let over = since.elapsed();
        // The wall is read first: no more of a processor is used than it says.
        let is_used =
            || processor_time().zip(used).is_none_or(|(now, before)| now.saturating_sub(before) >= time);
        over >= time && (over >= time.saturating_mul(WALL) || is_used())
    }
}

/// The same, from when it is first asked.
pub fn patience_once_asked(time: Duration) -> impl Fn() -> bool + Send + Sync {
    let begun = OnceLock::new();
    move || begun.get_or_init(|| patience(time))()
}

/// What the thread has used of a processor.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
}

/// Does not tell on this system.
#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
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
