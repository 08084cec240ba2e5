//! Child processes of the program, with a time limit and cancellation.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The maximum number of concurrent child processes.
const MAX_CHILDREN: usize = 4;
/// The maximum stored length of each output.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// The interval between two polls of a child.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A flag that cancels a job; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Requests the end of the job.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once the end was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Limits the number of concurrent children; clones share the limit.
#[derive(Clone, Debug, Default)]
pub struct ChildLimit(Arc<(Mutex<usize>, Condvar)>);

/// One of the slots, free again when dropped.
struct ProcessSlot<'s>(&'s ChildLimit);

impl ChildLimit {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot; `None` if the job is cancelled meanwhile.
    fn acquire(&self, is_cancelled: &dyn Fn() -> bool) -> Option<ProcessSlot<'_>> {
        let mut taken = self.lock();
        while *taken >= MAX_CHILDREN {
            if is_cancelled() {
                return None;
            }
            let waited = self.0.1.wait_timeout(taken, Duration::from_millis(20));
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Some(ProcessSlot(self))
    }
}

impl Drop for ProcessSlot<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.0.1.notify_one();
    }
}

/// The output of a child that ended by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildOutput {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The reason that a child has no output.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// A newer job replaced it, or the editor cancelled it.
    #[error("cancelled")]
    Cancelled,
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It could not be started or observed.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

#[derive(Debug)]
pub struct ChildCommand<'c> {
    pub program: &'c Path,
    pub arguments: Vec<&'c OsStr>,
    pub folder: &'c Path,
    /// Standard input; nothing if empty.
    pub input: &'c str,
    /// The time limit, from the start of the process.
    pub time_limit: Duration,
}

/// Runs a command to its end, unless `is_cancelled` returns true.
///
/// # Errors
/// If it is cancelled, exceeds its limit, or cannot be started. In the first two cases it is killed together with
/// the processes that it started.
pub fn run_child(
    command: &ChildCommand<'_>,
    slots: &ChildLimit,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<ChildOutput, ChildError> {
    let _slot = slots.acquire(is_cancelled).ok_or(ChildError::Cancelled)?;
    if is_cancelled() {
        return Err(ChildError::Cancelled);
    }
    let mut process = Command::new(command.program);
    process
        .args(&command.arguments)
        .current_dir(command.folder)
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A separate process group, so that compilers end with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let mut child = process.spawn()?;
    let input = child.stdin.take().zip(Some(command.input.to_owned()));
    // A child that never reads its input must not block the job.
    let writer = input.map(|(mut pipe, text)| spawn(move || drop(pipe.write_all(text.as_bytes()))));
    let [stdout, stderr] = [child.stdout.take().map(read_pipe), child.stderr.take().map(read_pipe)];
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let is_late = since.elapsed() > command.time_limit;
        if is_late || is_cancelled() {
            kill_group(&mut child);
            // The pipes close with the last process of the group; their threads end then.
            return Err(if is_late {
                ChildError::TimedOut(command.time_limit)
            } else {
                ChildError::Cancelled
            });
        }
        sleep(POLL_INTERVAL);
    };
    drop(writer);
    let text =
        |reader: Option<JoinHandle<String>>| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    Ok(ChildOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a pipe to its end in a thread.
fn read_pipe(pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is used.
        drop(pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Kills a child with its process group, and waits for it.
fn kill_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // The group may have ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    drop(child.kill());
    drop(child.wait());
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(
        script: &str,
        input: &str,
        limit: Duration,
        cancel: &CancelFlag,
    ) -> Result<ChildOutput, ChildError> {
        let arguments = vec![OsStr::new("-c"), OsStr::new(script)];
        let command = ChildCommand {
            program: Path::new("sh"),
            arguments,
            folder: Path::new("/"),
            input,
            time_limit: limit,
        };
        run_child(&command, &ChildLimit::default(), &|| cancel.is_cancelled())
    }

    #[test]
    fn children_exit_or_are_killed() {
        let (long, short) = (Duration::from_secs(20), Duration::from_millis(50));
        let output = shell("cat; echo no >&2; exit 3", "text", long, &CancelFlag::default()).unwrap();
        assert_eq!(
            output,
            ChildOutput { code: Some(3), stdout: "text".to_owned(), stderr: "no\n".to_owned() }
        );
        let killed = shell("kill -9 $$", "", long, &CancelFlag::default()).unwrap();
        assert_eq!(killed.code, None);
        let since = Instant::now();
        let late = shell("sleep 30 & sleep 30", "", short, &CancelFlag::default());
        assert!(matches!(late, Err(ChildError::TimedOut(_))), "{late:?}");
        let cancel = CancelFlag::default();
        cancel.cancel();
        assert!(matches!(shell("sleep 30", "", long, &cancel), Err(ChildError::Cancelled)));
        assert!(since.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn waiting_for_a_slot_can_be_cancelled() {
        let (slots, cancel) = (ChildLimit::default(), CancelFlag::default());
        let is_cancelled = || cancel.is_cancelled();
        let taken: Vec<_> = (0..MAX_CHILDREN).map(|_| slots.acquire(&is_cancelled).unwrap()).collect();
        cancel.cancel();
        assert!(slots.acquire(&is_cancelled).is_none());
        drop(taken);
        assert!(slots.acquire(&is_cancelled).is_some());
    }
}
