//! Captures the standard output of a driver: Honeykrisp prints its shader code only there.

use std::ffi::{c_int, c_void};
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// The file descriptor of standard output.
const STDOUT_FD: c_int = 1;

unsafe extern "C" {
    fn dup(descriptor: c_int) -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn close(descriptor: c_int) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Restores standard output when dropped.
struct RestoreStdout(c_int);

impl Drop for RestoreStdout {
    fn drop(&mut self) {
        // SAFETY: a null stream means all streams; the descriptor belongs to this value and is not used
        // afterwards.
        unsafe {
            fflush(std::ptr::null_mut());
            dup2(self.0, STDOUT_FD);
            close(self.0);
        }
    }
}

/// Runs a closure and returns the text that was written to standard output during it; empty if it cannot be
/// captured.
pub(crate) fn capture_output<T>(action: impl FnOnce() -> T) -> (T, String) {
    let Ok(mut file) = unlinked_temporary_file() else { return (action(), String::new()) };
    // SAFETY: flushing all streams and duplicating a descriptor have no preconditions.
    let before = unsafe {
        fflush(std::ptr::null_mut());
        dup(STDOUT_FD)
    };
    if before < 0 {
        return (action(), String::new());
    }
    let restore = RestoreStdout(before);
    // SAFETY: both descriptors are open: one belongs to the file, the other was just duplicated.
    if unsafe { dup2(file.as_raw_fd(), STDOUT_FD) } < 0 {
        return (action(), String::new());
    }
    let result = action();
    drop(restore);
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    (result, if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() })
}

/// Returns an unlinked temporary file, readable only by this process.
fn unlinked_temporary_file() -> std::io::Result<std::fs::File> {
    let path = std::env::temp_dir().join(format!("vk-litmus-output-{}", std::process::id()));
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
