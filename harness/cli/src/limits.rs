//! Limits of the operating system on this process.

use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGABRT;

use crate::exit::{Outcome, exit_code};

/// The smallest address space and stack with which the program starts.
const MIN_ADDRESS_SPACE_BYTES: u64 = 64 << 20;
const MIN_STACK_BYTES: u64 = 128 << 10;

/// Makes exhausted memory and an overflown stack end this process with the exit code of its environment.
///
/// The standard library prints the reason and aborts. A worker keeps that behaviour: its parent reports the
/// signal.
///
/// # Errors
/// The limit that is too low to start, and how to raise it.
pub(crate) fn prepare_process() -> Result<(), String> {
    let limits = [
        (Resource::As, MIN_ADDRESS_SPACE_BYTES, "address space", "ulimit -v unlimited"),
        (Resource::Stack, MIN_STACK_BYTES, "stack", "ulimit -s 8192"),
    ];
    for (resource, needed, what, command) in limits {
        if let Some(limit) = getrlimit(resource).current.filter(|limit| *limit < needed) {
            let (limit, needed) = (limit >> 10, needed >> 10);
            return Err(format!(
                "error: the limit of the {what} is {limit} KiB, and at least {needed} KiB are needed: raise it with `{command}`"
            ));
        }
    }
    if std::env::args_os().nth(1).is_none_or(|command| command != "worker") {
        let always = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let code = i32::from(exit_code(Outcome::Environment));
        // Without the handler, the process ends with the signal.
        let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, code, always);
    }
    Ok(())
}
