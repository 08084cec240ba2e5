//! What this process has used of the processors: on a busy machine far less than the time that goes by.

use std::time::Duration;

/// Processor time of all threads of this process; nothing where the system does not tell.
#[cfg(unix)]
pub(crate) fn used() -> Option<Duration> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).ok()?))
}

/// Does not tell on this system.
#[cfg(not(unix))]
pub(crate) fn used() -> Option<Duration> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::{Duration, Instant};

    use super::used;

    #[test]
    fn it_grows_with_work() {
        let before = used().unwrap();
        let since = Instant::now();
        while used().unwrap() < before + Duration::from_millis(5) {
            assert!(since.elapsed() < Duration::from_secs(30), "work takes no processor time");
        }
    }
}
