//! The processor time of this process, which on a busy machine is far less than elapsed time.

use std::time::Duration;

/// Returns the processor time of all threads of this process; `None` if the system does not provide it.
#[cfg(unix)]
pub(crate) fn used() -> Option<Duration> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).ok()?))
}

/// Returns `None`: this system does not provide it.
#[cfg(not(unix))]
pub(crate) fn used() -> Option<Duration> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::{Duration, Instant};

    use super::used;

    #[test]
    fn processor_time_grows_with_work() {
        let before = used().unwrap();
        let since = Instant::now();
        while used().unwrap() < before + Duration::from_millis(5) {
            assert!(since.elapsed() < Duration::from_secs(30), "work takes no processor time");
        }
    }
}
