//! Ends the processes that a worker leaves behind.
//!
//! A driver may fork processes that leave the process group of the worker. On Linux, this process becomes the
//! parent of all its orphaned descendants, and recognizes those of a worker by a variable of their
//! environment. Other systems end only the process group.

use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable of the environment that has the mark of a worker.
const VARIABLE: &str = "VK_LITMUS_WORKER";

/// The mark of a worker and its descendants, which no other worker of this machine has.
#[derive(Clone, Debug)]
pub struct WorkerMark(String);

impl WorkerMark {
    /// Marks the process of a command that starts next, and makes this process adopt its orphans.
    pub fn add_to(command: &mut Command) -> WorkerMark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        command.env(VARIABLE, &mark);
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
            tracing::debug!(%error, "orphans of workers are not adopted");
        }
        WorkerMark(mark)
    }

    /// Kills the processes that a worker left, after it has ended and was waited for. Call it only once: the id
    /// of its process group may be reused.
    pub fn kill_remaining(&self, worker: &Child) {
        kill_process_group(worker);
        #[cfg(target_os = "linux")]
        linux::kill_orphans(&format!("{VARIABLE}={}", self.0));
    }
}

/// Kills the remaining processes of an exited group leader, on systems with process groups.
fn kill_process_group(child: &Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // Most workers leave no process.
        if kill_process_group(Pid::from_child(child), Signal::KILL).is_ok() {
            tracing::debug!("terminating processes left by a worker");
        }
    }
    #[cfg(not(unix))]
    let _ = child;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

    use crate::memory_limit::children_of;

    /// The maximum number of generations of orphans: the children of a killed process are adopted next.
    const MAX_GENERATIONS: u32 = 64;
    /// The number of waits of [`WAIT_TIME`] for the end of a killed process.
    const MAX_WAITS: u32 = 50;
    const WAIT_TIME: Duration = Duration::from_millis(2);

    pub(super) fn kill_orphans(mark: &str) {
        for _ in 0..MAX_GENERATIONS {
            let children = children_of(std::process::id());
            let orphans: Vec<Pid> = children
                .into_iter()
                .filter(|pid| has_mark(*pid, mark))
                .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
                .collect();
            if orphans.is_empty() {
                return;
            }
            tracing::debug!(processes = orphans.len(), "terminating processes left by a worker");
            for orphan in &orphans {
                // A process that has ended needs no signal.
                let _ = kill_process(*orphan, Signal::KILL);
            }
            for orphan in orphans {
                wait_for_end(orphan);
            }
        }
    }

    fn has_mark(pid: u32, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }

    /// Waits for a killed process, unless the kernel cannot end it soon.
    fn wait_for_end(orphan: Pid) {
        for _ in 0..MAX_WAITS {
            match waitpid(Some(orphan), WaitOptions::NOHANG) {
                Ok(None) => std::thread::sleep(WAIT_TIME),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}
