//! Pins the threads of a CPU driver to different processors, because threads on one processor never overlap.

use std::collections::BTreeSet;

/// Returns the thread ids of this process; empty if the system does not list them.
#[cfg(target_os = "linux")]
pub(crate) fn threads() -> BTreeSet<i32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return BTreeSet::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Pins each thread that is not in `before` to one processor of this process, round-robin. If the system
/// refuses, only the rates are lower.
#[cfg(target_os = "linux")]
pub(crate) fn spread_new_threads(before: &BTreeSet<i32>) {
    use rustix::process::Pid;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let new: Vec<i32> = threads().difference(before).copied().collect();
    for (thread, processor) in new.iter().zip(processors.iter().cycle()) {
        let mut one = CpuSet::new();
        one.set(*processor);
        if let Err(error) = sched_setaffinity(Pid::from_raw(*thread), &one) {
            tracing::debug!(%error, thread, "a driver thread is not moved");
        }
    }
}

/// Pins the calling thread to the `number`-th processor of this process, modulo their number.
#[cfg(target_os = "linux")]
pub(crate) fn take_processor(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let Some(processor) = processors.get(number % processors.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(*processor);
    if let Err(error) = sched_setaffinity(None, &one) {
        tracing::debug!(%error, "a thread is not moved");
    }
}

/// Does nothing: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_processor(_: usize) {}

/// Returns an empty set: this system does not list threads.
#[cfg(not(target_os = "linux"))]
pub(crate) fn threads() -> BTreeSet<i32> {
    BTreeSet::new()
}

/// Does nothing: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn spread_new_threads(_: &BTreeSet<i32>) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::{Arc, Barrier};

    use rustix::thread::{CpuSet, gettid, sched_getaffinity};

    use super::*;

    #[test]
    fn new_threads_get_a_processor_each() {
        let before = threads();
        assert!(before.contains(&gettid().as_raw_nonzero().get()));
        let started = Arc::new(Barrier::new(3));
        let spread = Arc::new(Barrier::new(3));
        let new: Vec<_> = (0..2)
            .map(|_| {
                let (started, spread) = (Arc::clone(&started), Arc::clone(&spread));
                std::thread::spawn(move || {
                    started.wait();
                    spread.wait();
                    let allowed = sched_getaffinity(None).unwrap();
                    (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect::<Vec<_>>()
                })
            })
            .collect();
        started.wait();
        spread_new_threads(&before);
        spread.wait();
        let processors: Vec<_> = new.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(processors.iter().all(|own| own.len() == 1), "{processors:?}");
    }
}
