//! One worker process: the threads that transfer its messages, and its termination.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::orphans::WorkerMark;
use crate::memory_limit::{self, ProcessorUsage};
use crate::wire::RECORD_SEPARATOR;

/// The longest line that a worker may send.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// The size of the stored standard error: a panic's message comes before its backtrace.
const STDERR_BYTES: usize = 16_384;
/// Time limit for a process to exit before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) enum WorkerNotification {
    /// A record: the JSON text of one message.
    Record(Vec<u8>),
    /// Its output is invalid.
    Unreadable(String),
    /// It closed its output.
    Ended,
}

/// A worker process with a mark and in its own process group, so that processes that its driver starts end with
/// it.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    mark: WorkerMark,
    /// The exit status. The process group is killed when it becomes known, and never again: its id may be
    /// reused.
    status: Option<ExitStatus>,
    generation: u64,
    requests: Sender<String>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: JoinHandle<()>,
}

impl Worker {
    /// Starts a process, whose notifications carry `generation`.
    pub fn start(
        mut command: Command,
        generation: u64,
        notes: &SyncSender<(u64, WorkerNotification)>,
    ) -> io::Result<Worker> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mark = WorkerMark::add_to(&mut command);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        memory_limit::prefer_for_oom_killer(&child);
        let stdout = child.stdout.take();
        let notes = notes.clone();
        let reads = move || {
            let note =
                stdout.map_or(WorkerNotification::Ended, |stdout| read_records(stdout, generation, &notes));
            // The pool may have ended.
            let _ = notes.send((generation, note));
        };
        // A worker that does not read must not block the pool, so a thread holds its requests.
        let (requests, waiting) = channel::<String>();
        let stdin = child.stdin.take();
        let writes = move || {
            let Some(mut stdin) = stdin else { return };
            for request in waiting {
                if writeln!(stdin, "{request}").and_then(|()| stdin.flush()).is_err() {
                    // The thread that reads its output reports its end.
                    return;
                }
            }
        };
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let (tail, stream) = (Arc::clone(&stderr), child.stderr.take());
        let read_stderr = move || {
            if let Some(stream) = stream {
                read_tail(stream, &tail);
            }
        };
        let start = |thread: Box<dyn FnOnce() + Send>| std::thread::Builder::new().spawn(thread);
        let threads = start(Box::new(read_stderr)).and_then(|keeper| {
            start(Box::new(reads))?;
            start(Box::new(writes))?;
            Ok(keeper)
        });
        match threads {
            Ok(stderr_reader) => {
                Ok(Worker { child, mark, status: None, generation, requests, stderr, stderr_reader })
            }
            Err(error) => {
                // No thread could be created. The process may have ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Returns the number in its notifications.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns its resident memory in bytes, with that of its descendants, if it exceeds `limit`.
    pub fn memory_above(&self, limit: u64) -> Option<u64> {
        memory_limit::usage_above_limit(&self.child, limit)
    }

    /// Returns its processor time, with that of its descendants.
    pub fn processor_usage(&self) -> ProcessorUsage {
        memory_limit::processor_usage(&self.child)
    }

    pub fn send(&self, line: String) {
        // The end of its output reports a worker that exited.
        let _ = self.requests.send(line);
    }

    /// Kills the process group if the worker exited. A process that a driver forked would keep the output
    /// open.
    pub fn kill_group_if_exited(&mut self) {
        self.wait_until(Instant::now());
    }

    pub fn kill(mut self) {
        self.terminate();
    }

    /// Lets idle workers exit, and kills those that do not exit soon.
    pub fn retire(mut workers: Vec<Worker>) {
        for worker in &mut workers {
            // The worker exits when its input is closed.
            worker.requests = channel().0;
        }
        let deadline = Instant::now() + EXIT_TIMEOUT;
        workers.retain_mut(|worker| worker.wait_until(deadline).is_none());
        // All are signalled before waiting for any, so that several hanging workers take no longer than one.
        workers.iter_mut().for_each(Worker::send_kill);
        let deadline = Instant::now() + EXIT_TIMEOUT;
        for worker in &mut workers {
            worker.wait_until(deadline);
        }
    }

    /// Waits for the exit after the output was closed; returns signal, exit code and the end of standard
    /// error.
    pub fn wait(mut self) -> (Option<i32>, Option<i32>, String) {
        // A process may close its output and continue to run.
        let status = self.wait_until(Instant::now() + EXIT_TIMEOUT).or_else(|| self.terminate());
        // A descendant can hold standard error open, so the wait for its end is limited.
        let deadline = Instant::now() + EXIT_TIMEOUT / 2;
        while !self.stderr_reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let tail: Vec<u8> = {
            let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
            tail.iter().copied().collect()
        };
        let text = String::from_utf8_lossy(&tail).into_owned();
        (status.and_then(signal), status.and_then(|status| status.code()), text)
    }

    /// Kills it. A process that the kernel cannot end, because a driver waits for hardware, is left running.
    fn terminate(&mut self) -> Option<ExitStatus> {
        self.send_kill();
        self.wait_until(Instant::now() + EXIT_TIMEOUT)
    }

    fn send_kill(&mut self) {
        if let Err(error) = self.child.kill() {
            tracing::warn!(%error, "a worker cannot be terminated");
        }
    }

    fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        while self.status.is_none() {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.mark.kill_remaining(&self.child);
                    self.status = Some(status);
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "the exit status of a worker is unknown");
                    return None;
                }
            }
        }
        self.status
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Forwards every record. Text before the separator of a line, and lines without one, are output of a driver.
fn read_records(
    stream: impl Read,
    generation: u64,
    notes: &SyncSender<(u64, WorkerNotification)>,
) -> WorkerNotification {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return WorkerNotification::Ended,
            Ok(_) => {}
            Err(error) => return WorkerNotification::Unreadable(error.to_string()),
        }
        if line.last() != Some(&b'\n') {
            // The output ended inside a line, or the line is longer than any message.
            if line.len() as u64 >= MAX_LINE_BYTES {
                return WorkerNotification::Unreadable(format!("a line of more than {MAX_LINE_BYTES} bytes"));
            }
            return WorkerNotification::Ended;
        }
        if let Some(start) = line.iter().position(|byte| *byte == RECORD_SEPARATOR) {
            let record = line.split_off(start + 1);
            if notes.send((generation, WorkerNotification::Record(record))).is_err() {
                return WorkerNotification::Ended;
            }
        }
    }
}

fn read_tail(mut stream: impl Read, tail: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(buffer.iter().take(count));
        let surplus = tail.len().saturating_sub(STDERR_BYTES);
        // The end of the output is kept, because it has the message of a crash.
        tail.drain(..surplus);
    }
}
