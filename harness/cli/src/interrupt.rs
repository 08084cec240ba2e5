//! Signals: they interrupt a run, and end every other command after its temporary folders are removed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(unix)]
use std::sync::atomic::Ordering;
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

/// True if a run handles signals.
#[cfg(unix)]
static IS_RUN_INTERRUPTIBLE: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
fn watched_signals() -> std::io::Result<signal_hook::iterator::Signals> {
    let signals = [SIGINT, SIGTERM].into_iter().chain(should_handle_hangup().then_some(SIGHUP));
    signal_hook::iterator::Signals::new(signals)
}

/// Starts a thread that removes all temporary folders after a signal, and then ends the process as the signal
/// does by default. A run handles signals itself, once it has a journal.
#[cfg(unix)]
pub(crate) fn remove_folders_on_signals() {
    let Ok(mut signals) = watched_signals() else { return };
    let watch = move || {
        for signal in signals.forever() {
            if !IS_RUN_INTERRUPTIBLE.load(Ordering::Relaxed) {
                campaign::temporary::remove_all();
                // If this fails, the sender can still use SIGKILL.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    // Without the thread, the handlers of the signals would ignore them.
    if std::thread::Builder::new().spawn(watch).is_err() {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true)));
        }
    }
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. A second signal, if not a duplicate, ends the program
/// immediately.
#[cfg(unix)]
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut signals = watched_signals().map_err(Failure::environment_error)?;
    IS_RUN_INTERRUPTIBLE.store(true, Ordering::Relaxed);
    let set = flag.clone();
    let watch = move || {
        let mut first = None;
        for signal in signals.forever() {
            set.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() >= DUPLICATE_SIGNAL_TIME {
                campaign::temporary::remove_all();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new().spawn(watch).map_err(|error| Failure::not_started(&error))?;
    Ok(flag)
}

/// Lets signals end the process again, for work after an interruptible run.
#[cfg(unix)]
pub(crate) fn end_on_signals() {
    IS_RUN_INTERRUPTIBLE.store(false, Ordering::Relaxed);
}

/// Not implemented on this system: a second signal ends the program.
#[cfg(not(unix))]
pub(crate) fn end_on_signals() {}

/// Returns a flag that the first signal sets. A second signal ends the program immediately.
#[cfg(not(unix))]
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the conditional default must read the flag before it is set.
        signal_hook::flag::register_conditional_default(signal, flag.clone())
            .map_err(Failure::environment_error)?;
        signal_hook::flag::register(signal, flag.clone()).map_err(Failure::environment_error)?;
    }
    Ok(flag)
}
