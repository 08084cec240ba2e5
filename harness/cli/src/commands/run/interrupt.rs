//! Signals that interrupt a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;

/// A signal within this time of the first one is a duplicate: `timeout` of coreutils signals the program and
/// its group.
#[cfg(unix)]
const DUPLICATE_SIGNAL_TIME: Duration = Duration::from_secs(1);

/// Returns true if SIGHUP should interrupt the run.
///
/// Under `nohup` the signal is ignored, and installing a handler would undo that. If the status is unknown,
/// the signal is assumed to be ignored.
#[cfg(unix)]
fn should_handle_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| (mask >> (SIGHUP - 1)) & 1 == 0)
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. A second signal, if not a duplicate, ends the program
/// immediately.
#[cfg(unix)]
pub(super) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM].into_iter().chain(should_handle_hangup().then_some(SIGHUP));
    let signals = signal_hook::iterator::Signals::new(signals);
    let mut signals = signals.map_err(Failure::environment_error)?;
    let set = flag.clone();
    let watch = move || {
        let mut first = None;
        for signal in signals.forever() {
            set.store(true, std::sync::atomic::Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() >= DUPLICATE_SIGNAL_TIME {
                // If this fails, the sender can still use SIGKILL.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new().spawn(watch).map_err(|error| Failure::not_started(&error))?;
    Ok(flag)
}

/// Returns a flag that the first signal sets. A second signal ends the program immediately.
#[cfg(not(unix))]
pub(super) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the conditional default must read the flag before it is set.
        signal_hook::flag::register_conditional_default(signal, flag.clone())
            .map_err(Failure::environment_error)?;
        signal_hook::flag::register(signal, flag.clone()).map_err(Failure::environment_error)?;
    }
    Ok(flag)
}
