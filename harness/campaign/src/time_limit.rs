//! Time limits for the models, which have no clock and call a stop function.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The limit on elapsed time, as a multiple of the limit on processor time. A busy machine thus rarely
/// changes an answer.
const ELAPSED_TIME_FACTOR: u32 = 4;

/// Returns a function that is true once the calling thread has used `time` of a processor. It is also true
/// after [`ELAPSED_TIME_FACTOR`] times as much. Without per-thread clocks, elapsed time counts. Call it on
/// the thread that created it.
pub fn stop_after(time: Duration) -> impl Fn() -> bool + Send + Sync {
    let (used, since) = (processor_time(), Instant::now());
    move || {
        let elapsed = since.elapsed();
        // Reading the elapsed time first is cheap, and processor time cannot exceed it.
        let is_time_used =
            || processor_time().zip(used).is_none_or(|(now, before)| now.saturating_sub(before) >= time);
        elapsed >= time && (elapsed >= time.saturating_mul(ELAPSED_TIME_FACTOR) || is_time_used())
    }
}

/// Like [`stop_after`], starting at the first call of the function.
pub fn stop_after_first_call(time: Duration) -> impl Fn() -> bool + Send + Sync {
    let stop = OnceLock::new();
    move || stop.get_or_init(|| stop_after(time))()
}

/// Returns the processor time of the calling thread.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
}

/// This system has no clock for a thread.
#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_also_bounds_elapsed_time() {
        assert!(stop_after(Duration::ZERO)());
        assert!(!stop_after(Duration::from_secs(3600))());
        // A sleeping thread uses no processor time, so the limit on elapsed time ends it.
        let stop = stop_after(Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(20));
        assert!(stop());
    }
}
